// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/bfloat16_tile.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "clearhead/kernels/bfloat16_instruction.h"
#include "clearhead/kernels/softmax.h"
#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

using tests::kInf;
using tests::kNaN;
using tests::normal_values;

float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }

float flush(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// One step of the instruction. What lies below 2^-126 with 24 digits is flushed, before its last digits are lost to a
// limited exponent: 2^-126 - 2^-151 is the first that rounds up to 2^-126.
float step(float a, float b, float sum) {
  a = flush(a), b = flush(b), sum = flush(sum);
  const float result = flush(std::fma(a, b, sum));
  if (std::abs(result) != 0x1p-126f) return result;
  const double rest = std::fma(double{a}, double{b}, double{sum} - double{result});  // exact - result
  return std::copysign(1.0, double{result}) * rest < -0x1p-151 ? std::copysign(0.0f, result) : result;
}

float step_of_pairs(Pair a, Pair b, float sum) {
  return step(as_float(a << 16), as_float(b << 16), step(as_float(a & 0xffff0000), as_float(b & 0xffff0000), sum));
}

Pair rounded(float number) {
  const auto bits = std::bit_cast<uint32_t>(flush(number));
  if (std::isnan(number)) return bits >> 16 | 0x40;
  const uint32_t below = bits & 0xffff, upper = bits >> 16;
  return upper + (below > 0x8000 || (below == 0x8000 && upper % 2 == 1) ? 1 : 0);
}

Pair pair_of(const std::vector<float>& numbers, size_t first, bool second) {
  return rounded(numbers[first]) | (second ? rounded(numbers[first + 1]) << 16 : 0);
}

void expect_same(float found, float want, const std::string& where) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(found)) << where;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(want)) << where << " " << found << " " << want;
  }
}

struct Problem {
  size_t rows, depth, columns;
  std::vector<float> left, right;  // [rows, depth], [depth, columns]
  std::vector<Pair> left_pairs, panels;
  std::vector<float> output;

  Problem(size_t some_rows, size_t some_depth, size_t some_columns)
      : rows(some_rows),
        depth(some_depth),
        columns(some_columns),
        left(normal_values(rows * depth, 1)),
        right(normal_values(depth * columns, 2)),
        left_pairs(rows * pair_count(depth), 0xffffffff),
        panels(panel_count(columns) * pair_count(depth) * kPanelWidth, 0xffffffff),
        output(rows * width(), 7.0f) {
    round_to_pairs(left.data(), depth, rows, depth, left_pairs.data(), pair_count(depth));
    pack_columns_to_pairs(right.data(), columns, depth, columns, panels);
  }

  size_t width() const { return panel_count(columns) * kPanelWidth; }

  PairProduct product() {
    return {.left = left_pairs.data(),
            .left_stride = pair_count(depth),
            .panels = panels.data(),
            .panel_stride = pair_count(depth) * kPanelWidth,
            .output = output.data(),
            .output_stride = width(),
            .rows = rows,
            .pairs = pair_count(depth),
            .num_panels = panel_count(columns)};
  }

  float definition(size_t row, size_t column, float start = 0) const {
    float sum = start;
    for (size_t k = 0; k < depth; k += 2) {
      const bool second = k + 1 < depth;
      const Pair b =
          rounded(right[k * columns + column]) | (second ? rounded(right[(k + 1) * columns + column]) << 16 : 0);
      sum = step_of_pairs(pair_of(left, row * depth + k, second), b, sum);
    }
    return sum;
  }
};

TEST(PairProduct, HasTheBitsOfItsDefinitionForAnySizesOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    for (size_t rows = 0; rows <= 27; ++rows) {
      for (size_t columns : {1, 16, 33, 64, 112}) {
        Problem p(rows, 22 + columns % 2, columns);
        PairProduct product = p.product();
        product.factor = 0.37f;
        std::vector<float> maxima(rows * kPanelWidth, -0.5f);
        product.maxima = maxima.data();
        pair_product(product);
        for (size_t i = 0; i < rows * kPanelWidth; ++i) {
          float largest = -0.5f;
          for (size_t j = i % kPanelWidth; j < p.width(); j += kPanelWidth) {
            largest = std::max(largest, p.output[i / kPanelWidth * p.width() + j]);
          }
          EXPECT_EQ(maxima[i], largest);
        }
        for (size_t i = 0; i < rows; ++i) {
          for (size_t j = 0; j < columns; ++j) {
            const float want = std::fma(p.definition(i, j), 0.37f, 0.0f);
            expect_same(p.output[i * p.width() + j], want, std::to_string(rows) + " x " + std::to_string(columns));
          }
        }
      }
    }
  });
}

TEST(PairProduct, GoesOnFromWhatStandsThereAndIsNearTheTruthOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    Problem p(5, 64, 20);
    PairProduct product = p.product();
    pair_product(product);
    const std::vector<float> whole = p.output;
    product.pairs = 13;
    pair_product(product);
    product.left += 13, product.panels += 13 * kPanelWidth;
    product.pairs = 32 - 13, product.accumulate = true;
    pair_product(product);
    EXPECT_EQ(tests::bits_of(p.output), tests::bits_of(whole));
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 20; ++j) {
        double sum = 0, terms = 0;
        for (size_t k = 0; k < 64; ++k) {
          const double term = double{as_float(rounded(p.left[i * 64 + k]) << 16)} *
                              double{as_float(rounded(p.right[k * 20 + j]) << 16)};
          sum += term, terms += std::abs(term);
        }
        EXPECT_NEAR(whole[i * 32 + j], sum, 65 * 0x1p-24 * terms);
      }
    }
  });
}

// One product of a pair with a pair on top of a sum.
float instruction(Pair a, Pair b, float sum) {
  std::vector<Pair> panel(kPanelWidth, b);
  std::vector<float> output(kPanelWidth, sum);
  pair_product({.left = &a,
                .left_stride = 1,
                .panels = panel.data(),
                .panel_stride = kPanelWidth,
                .output = output.data(),
                .output_stride = kPanelWidth,
                .rows = 1,
                .pairs = 1,
                .num_panels = 1,
                .accumulate = true});
  return output[7];
}

void expect_step(Pair a, Pair b, float sum) {
  char where[64];
  std::snprintf(where, sizeof where, "%08x %08x on %08x", a, b, std::bit_cast<uint32_t>(sum));
  expect_same(instruction(a, b, sum), std::fma(step_of_pairs(a, b, sum), 1.0f, 0.0f), where);
}

TEST(PairProduct, HasTheBitsOfItsDefinitionForAnyBitPatternOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    std::mt19937 random(3);
    const auto half = [&](uint32_t least, uint32_t most) {  // of an exponent between these
      return (random() & 0x807f) | (least + random() % (most - least + 1)) << 7;
    };
    const auto pair = [&](uint32_t least, uint32_t most) { return half(least, most) | half(least, most) << 16; };
    for (int i = 0; i < 30000; ++i) {
      expect_step(static_cast<Pair>(random()), static_cast<Pair>(random()), as_float(static_cast<uint32_t>(random())));
      expect_step(pair(120, 130), pair(120, 130), as_float(half(118, 134) << 16 | (random() & 0xffff)));
      expect_step(pair(55, 70), pair(55, 70), as_float(half(0, 8) << 16 | (random() & 0xffff)));
      expect_step(pair(0, 2), pair(120, 254), as_float(half(0, 4) << 16));
    }
  });
}

TEST(PairProduct, FlushesWhatLiesBelowTheLeastNumberBeforeItIsRoundedOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    for (int steps = 0; steps <= 4; ++steps) {
      for (int exponent = -153; exponent <= -146; ++exponent) {
        for (float size : {1.0f, 1.25f, 1.5f, 1.75f, 1.0078125f, 1.9921875f}) {
          for (float sign : {1.0f, -1.0f}) {
            const float a = std::ldexp(size, exponent / 2), b = std::ldexp(1.0f, exponent - exponent / 2);
            const float sum = 0x1p-126f + std::ldexp(static_cast<float>(steps), -149);
            expect_step(rounded(-sign * a) << 16, rounded(b) << 16, sign * sum);
            expect_step(rounded(-sign * a), rounded(b), sign * sum);
          }
        }
      }
    }
  });
}

TEST(PairProduct, OfVisibleKeysDoesNotReadTheOthersOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    for (size_t keys : {1, 2, 7, 32}) {
      Problem clean(1, keys, 20);
      std::vector<uint8_t> visible(keys + keys % 2, 0);
      for (size_t k = 0; k < keys; ++k) visible[k] = k % 3 != 1;
      for (size_t k = 0; k < keys; ++k) {
        if (!visible[k]) clean.left[k] = 0;
      }
      round_to_pairs(clean.left.data(), keys, 1, keys, clean.left_pairs.data(), pair_count(keys));
      pair_product(clean.product());
      Problem odd = clean;
      for (size_t k = 0; k < keys; ++k) {
        if (!visible[k])
          odd.left[k] = 1, std::fill_n(odd.right.begin() + static_cast<long>(k * 20), 20, k % 2 ? kNaN : kInf);
      }
      round_to_pairs(odd.left.data(), keys, 1, keys, odd.left_pairs.data(), pair_count(keys));
      pack_columns_to_pairs(odd.right.data(), 20, keys, 20, odd.panels);
      PairProduct product = odd.product();
      product.left = odd.left_pairs.data(), product.panels = odd.panels.data();
      std::fill(odd.output.begin(), odd.output.end(), kNaN);
      product.output = odd.output.data();
      pair_product_of_visible(product, visible.data());
      EXPECT_EQ(tests::bits_of(odd.output), tests::bits_of(clean.output)) << keys;
    }
  });
}

TEST(RoundToPairs, RoundsEveryUpperHalfToNearestEvenOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    std::vector<float> numbers;
    for (uint32_t upper = 0; upper <= 0xffff; ++upper) {
      for (uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
        numbers.push_back(as_float(upper << 16 | lower));
    }
    std::vector<Pair> pairs(numbers.size() / 2);
    round_to_pairs(numbers.data(), numbers.size(), 1, numbers.size(), pairs.data(), pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      ASSERT_EQ(pairs[i], pair_of(numbers, 2 * i, true)) << numbers[2 * i] << " " << numbers[2 * i + 1];
    }
  });
}

// Where the machine has the instruction; elsewhere powers are raised and rounded one after the other.
TEST(RaiseAndRound, HasTheBitsOfRaisingAndRounding) {
  if (!has_pair_instruction()) return;
  for (size_t begin : {0, 16, 48}) {
    for (size_t end : {size_t{64}, size_t{80}, size_t{256}}) {
      for (size_t rows : {1, 7, 16}) {
        std::vector<float> scores = normal_values(16 * 272, 6);
        for (float& score : scores) score *= 40;
        for (size_t i = 0; i < scores.size(); i += 5) scores[i] = -kInf;
        std::fill_n(scores.begin() + 272, 272, -kInf);  // a row that sees nothing
        if (rows > 7) scores[7 * 272 + begin + 3] = kNaN;
        std::vector<Pair> pairs(16 * 144, 7), want(16 * 144, 7);
        float references[16] = {}, sums[16], rounded_sums[16], want_sums[16];
        std::vector<float> powers = scores;
        std::vector<RowSummary> summaries;
        for (size_t row = 0; row < rows; ++row) {
          summaries.push_back(softmax_tile({&powers[row * 272 + begin], end - begin}, {}));
          if (summaries[row].sum != 0) references[row] = summaries[row].reference;
        }
        round_powers(powers.data(), 272, rows, begin, end, want.data(), 144, want_sums);
        instruction::raise_and_round(
            {scores.data(), 272, rows, begin, end, references, pairs.data(), 144, sums, rounded_sums});
        for (size_t row = 0; row < rows; ++row) {
          expect_same(sums[row], summaries[row].sum, "sum");
          expect_same(rounded_sums[row], want_sums[row], "rounded sum");
          for (size_t k = row * 144; k < (row + 1) * 144 && row != 7; ++k) ASSERT_EQ(pairs[k], want[k]) << row;
        }
      }
    }
  }
}

TEST(RoundPowers, AddsUpTheRoundedNumbersOverVirtualLanesOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    std::vector<float> powers = normal_values(16 * 272, 5);
    for (float& power : powers) power = std::abs(power);
    for (size_t begin : {0, 16, 48, 240}) {
      for (size_t end : {begin + 1, begin + 15, begin + 16, size_t{256}}) {
        for (size_t rows : {1, 16}) {
          std::vector<Pair> pairs(16 * 144, 7);
          float sums[16];
          round_powers(powers.data(), 272, rows, begin, end, pairs.data(), 144, sums);
          for (size_t row = 0; row < rows; ++row) {
            float lanes[16] = {};
            for (size_t i = 0; i < 288; i += 2) {
              const bool inside = i >= begin && i < end;
              const Pair want = inside ? pair_of(powers, row * 272 + i, i + 1 < end) : 7;
              ASSERT_EQ(pairs[row * 144 + i / 2], want) << i;
              if (!inside) continue;
              lanes[i / 2 % 16] += as_float(want & 0xffff0000);
              lanes[i / 2 % 16] += as_float(want << 16);
            }
            for (size_t width = 8; width > 0; width /= 2) {
              for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
            }
            EXPECT_EQ(std::bit_cast<uint32_t>(sums[row]), std::bit_cast<uint32_t>(lanes[0])) << begin << " " << end;
          }
        }
      }
    }
  });
}

TEST(PackToPairs, PutsEveryNumberInItsPlaceAndZerosElsewhereOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    for (size_t depth : {1, 2, 3, 15, 16, 31, 32, 33, 64, 65, 100}) {
      for (size_t columns : {1, 5, 16, 17, 40}) {
        SCOPED_TRACE(std::to_string(depth) + " x " + std::to_string(columns));
        const size_t pairs = pair_count(depth), stride = 101;
        const std::vector<float> numbers = normal_values(101 * 101, 4);
        std::vector<Pair> rows(panel_count(columns) * pairs * kPanelWidth, 0xffffffff), cols = rows;
        pack_rows_to_pairs(numbers.data(), stride, depth, columns, rows);
        pack_columns_to_pairs(numbers.data(), stride, depth, columns, cols);
        for (size_t place = 0; place < rows.size(); ++place) {
          const size_t panel = place / (pairs * kPanelWidth), k = place / kPanelWidth % pairs * 2;
          const size_t column = panel * kPanelWidth + place % kPanelWidth;
          const auto number = [&](size_t row, size_t at) {
            return at < depth && column < columns ? numbers[row] : 0.0f;
          };
          ASSERT_EQ(rows[place],
                    rounded(number(column * stride + k, k)) | rounded(number(column * stride + k + 1, k + 1)) << 16);
          ASSERT_EQ(cols[place],
                    rounded(number(k * stride + column, k)) | rounded(number((k + 1) * stride + column, k + 1)) << 16);
        }
      }
    }
  });
}

TEST(AllFinite, FindsEveryPairThatIsNot) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    const bool finite = (half & 0x7f80) != 0x7f80;
    const Pair low[] = {0x3f803f80, 0x7f7f0000 | half}, high[] = {half << 16 | 0x7f7f, 0};
    EXPECT_EQ(all_finite(low), finite) << half;
    EXPECT_EQ(all_finite(high), finite) << half;
  }
}

}  // namespace
}  // namespace clearhead::kernels
