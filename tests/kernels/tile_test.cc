// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

using tests::bits_of;
using tests::kNaN;
using tests::normal_values;

// One product with its operands; rows and columns as the caller likes, the last panel filled up with zeros.
struct Problem {
  size_t rows, depth, columns;
  std::vector<float> left, right, panels;  // [rows, depth], [depth, columns], packed
  std::vector<float> output;               // [rows, 16 * panels]

  Problem(size_t some_rows, size_t some_depth, size_t some_columns)
      : rows(some_rows),
        depth(some_depth),
        columns(some_columns),
        left(normal_values(rows * depth, 1)),
        right(normal_values(depth * columns, 2)),
        panels(panel_count(columns) * depth * kPanelWidth, kNaN),
        output(rows * width(), 7.0f) {
    pack_columns(right.data(), columns, depth, columns, panels);
  }

  size_t width() const { return panel_count(columns) * kPanelWidth; }

  TileProduct product() {
    return {.left = left.data(),
            .left_stride = depth,
            .panels = panels.data(),
            .panel_stride = depth * kPanelWidth,
            .output = output.data(),
            .output_stride = width(),
            .rows = rows,
            .depth = depth,
            .num_panels = panel_count(columns)};
  }

  // The definition: the inner dimension in order, from +0. start and step allow another order.
  float in_order(size_t row, size_t column, bool fused, bool backwards = false) const {
    float sum = 0;
    for (size_t i = 0; i < depth; ++i) {
      const size_t k = backwards ? depth - 1 - i : i;
      const float a = left[row * depth + k], b = right[k * columns + column];
      if (fused) {
        sum = std::fma(a, b, sum);
      } else {
        const float rounded = a * b;
        sum += rounded;
      }
    }
    return sum;
  }
};

TEST(TileProduct, HasTheBitsOfItsDefinitionForAnyNumberOfRowsAndColumnsOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    const bool fused = tests::has_fused_multiply_add(target);
    for (size_t rows = 0; rows <= 27; ++rows) {
      for (size_t columns : {1, 16, 17, 33, 64, 100, 128}) {
        Problem p(rows, 23, columns);
        tile_product(p.product());
        for (size_t i = 0; i < rows; ++i) {
          for (size_t j = 0; j < columns; ++j) {
            ASSERT_EQ(std::bit_cast<uint32_t>(p.output[i * p.width() + j]),
                      std::bit_cast<uint32_t>(p.in_order(i, j, fused)))
                << rows << " rows, " << columns << " columns, output " << i << ", " << j;
          }
        }
      }
    }
  });
}

TEST(TileProduct, FindsTheLargestOutputOfEachRowAndLaneOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    for (size_t depth : {5, 200}) {
      Problem p(23, depth, 160);
      std::vector<float> maxima(23 * kPanelWidth, -1.5f);
      TileProduct product = p.product();
      product.maxima = maxima.data();
      tile_product(product);
      for (size_t i = 0; i < 23; ++i) {
        for (size_t lane = 0; lane < kPanelWidth; ++lane) {
          float want = -1.5f;
          for (size_t j = lane; j < p.width(); j += kPanelWidth) want = std::max(want, p.output[i * p.width() + j]);
          ASSERT_EQ(maxima[i * kPanelWidth + lane], want) << i << ", " << lane;
        }
      }
    }
  });
}

TEST(TileProduct, MultipliesRowsByTheirFactorsAtLastOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    const bool fused = tests::has_fused_multiply_add(target);
    for (size_t rows : {1, 5, 13}) {
      Problem problem(rows, 33, 40);
      std::vector<float> factors = normal_values(rows, 3);
      if (rows > 1) factors[1] = kNaN;
      TileProduct product = problem.product();
      product.row_factors = factors.data();
      tile_product(product);
      for (size_t row = 0; row < rows; ++row) {
        for (size_t column = 0; column < problem.columns; ++column) {
          const float want = problem.in_order(row, column, fused) * factors[row];
          const uint32_t bits = want == want ? std::bit_cast<uint32_t>(want) : 0x7fc00000u;
          const float found = problem.output[row * problem.width() + column];
          ASSERT_EQ(std::bit_cast<uint32_t>(found), bits) << row << ' ' << column;
        }
      }
    }
  });
}

TEST(TileProduct, AnotherOrderWouldShow) {
  Problem p(3, 300, 16);
  size_t different = 0;
  for (size_t j = 0; j < 16; ++j) different += p.in_order(1, j, true) != p.in_order(1, j, true, true);
  EXPECT_GE(different, 8u);
}

TEST(TileProduct, StaysWithinItsError) {
  tests::for_each_target([](const std::string& target) {
    for (size_t depth : {0, 1, 2, 32, 384, 1536}) {
      Problem p(7, depth, 40);
      tile_product(p.product());
      for (size_t i = 0; i < p.rows; ++i) {
        for (size_t j = 0; j < p.columns; ++j) {
          double sum = 0, terms = 0;
          for (size_t k = 0; k < depth; ++k) {
            const double term = double(p.left[i * depth + k]) * p.right[k * p.columns + j];
            sum += term, terms += std::abs(term);
          }
          const double bound = double(depth + 1) * 0x1p-24 * terms * (tests::has_fused_multiply_add(target) ? 1 : 2);
          ASSERT_LE(std::abs(p.output[i * p.width() + j] - sum), bound) << "depth " << depth;
        }
      }
    }
  });
}

TEST(TileProduct, ADepthThatIsCutHasTheBitsOfTheWhole) {
  tests::for_each_target([](const std::string&) {
    Problem whole(29, 101, 80), cut(29, 101, 80);
    tile_product(whole.product());
    size_t first = 0;
    for (size_t end : {1, 40, 41, 101}) {
      TileProduct part = cut.product();
      part.left += first;
      part.panels += first * kPanelWidth;
      part.depth = end - first;
      part.accumulate = first > 0;
      tile_product(part);
      first = end;
    }
    EXPECT_EQ(bits_of(cut.output), bits_of(whole.output));
  });
}

TEST(TileProduct, WritesNothingBesideItsOutputAndReadsNothingBesideItsInput) {
  tests::for_each_target([](const std::string&) {
    Problem p(13, 20, 48);
    tile_product(p.product());
    // The same in the middle of larger, poisoned matrices, one float off any alignment.
    const size_t left_stride = p.depth + 3, output_stride = p.width() + 5;
    std::vector<float> left(p.rows * left_stride + 1, kNaN), output(p.rows * output_stride + 1, 7.0f);
    for (size_t i = 0; i < p.rows; ++i) {
      std::copy_n(p.left.data() + i * p.depth, p.depth, left.data() + 1 + i * left_stride);
    }
    std::vector<float> panels(p.panels.size() + 1);
    std::copy(p.panels.begin(), p.panels.end(), panels.begin() + 1);
    TileProduct inside = p.product();
    inside.left = left.data() + 1;
    inside.left_stride = left_stride;
    inside.panels = panels.data() + 1;
    inside.output = output.data() + 1;
    inside.output_stride = output_stride;
    tile_product(inside);
    EXPECT_EQ(output[0], 7.0f);
    for (size_t i = 0; i < p.rows; ++i) {
      for (size_t j = 0; j < output_stride; ++j) {
        ASSERT_EQ(output[1 + i * output_stride + j], j < p.width() ? p.output[i * p.width() + j] : 7.0f);
      }
    }
  });
}

TEST(TileProduct, PoisonStaysInItsRowAndColumn) {
  tests::for_each_target([](const std::string&) {
    Problem clean(14, 20, 64), poisoned(14, 20, 64);
    poisoned.left[5 * 20 + 3] = kNaN;
    poisoned.panels[(2 * 20 + 7) * kPanelWidth + 9] = std::numeric_limits<float>::infinity();  // column 41
    tile_product(clean.product());
    tile_product(poisoned.product());
    for (size_t i = 0; i < 14; ++i) {
      for (size_t j = 0; j < 64; ++j) {
        const float value = poisoned.output[i * 64 + j];
        if (i == 5)
          ASSERT_TRUE(std::isnan(value));
        else if (j == 41)
          ASSERT_FALSE(std::isfinite(value));
        else
          ASSERT_EQ(value, clean.output[i * 64 + j]);
      }
    }
  });
}

TEST(PackRows, IsPackColumnsOfTheTranspose) {
  for (size_t columns : {1, 15, 16, 17, 40}) {
    const size_t depth = 7, stride = columns + 2;
    const auto matrix = normal_values(depth * stride, 3);
    std::vector<float> transposed(columns * depth);
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < columns; ++j) transposed[j * depth + k] = matrix[k * stride + j];
    }
    std::vector<float> a(panel_count(columns) * depth * kPanelWidth, kNaN), b = a;
    pack_columns(matrix.data(), stride, depth, columns, a);
    pack_rows(transposed.data(), depth, depth, columns, b);
    EXPECT_EQ(bits_of(a), bits_of(b));
    EXPECT_EQ(a[(columns - 1) / 16 * depth * 16 + (columns - 1) % 16], matrix[columns - 1]);
    for (size_t lane = columns % 16; lane != 0 && lane < 16; ++lane) EXPECT_EQ(a[a.size() - 16 + lane], 0.0f);
  }
}

TEST(PackValues, IsPackColumnsAndSaysWhetherAllAreFinite) {
  tests::for_each_target([](const std::string&) {
    for (size_t columns : {1, 16, 17, 64, 100}) {
      const size_t depth = 9, stride = columns + 3, room = depth * kPanelWidth;
      const std::vector<float> matrix = normal_values(depth * stride, 4);
      std::vector<float> want(panel_count(columns) * room), found = want;
      pack_columns(matrix.data(), stride, depth, columns, want);
      EXPECT_TRUE(pack_values(matrix.data(), stride, depth, columns, found.data(), room));
      EXPECT_EQ(bits_of(found), bits_of(want)) << columns;
      for (float odd : {kNaN, INFINITY, -INFINITY}) {
        std::vector<float> changed = matrix;
        changed[4 * stride + columns] = odd;  // beside the columns
        EXPECT_TRUE(pack_values(changed.data(), stride, depth, columns, found.data(), room)) << columns;
        for (size_t place : {size_t{0}, 5 * stride + columns / 2, (depth - 1) * stride + columns - 1}) {
          changed = matrix;
          changed[place] = odd;
          EXPECT_FALSE(pack_values(changed.data(), stride, depth, columns, found.data(), room)) << columns;
        }
      }
    }
  });
}

}  // namespace
}  // namespace clearhead::kernels
