// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/linear.h"

#include <algorithm>
#include <cassert>

#include "clearhead/base/memory.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/bfloat16_tile.h"
#include "clearhead/kernels/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/linear/linear.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/elementary-inl.h"
#include "clearhead/kernels/tile-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"
#include "clearhead/linear/half_panels-inl.h"
#include "clearhead/linear/integer_panels-inl.h"

#ifndef CLEARHEAD_LINEAR_LINEAR_BLOCK
#define CLEARHEAD_LINEAR_LINEAR_BLOCK
namespace clearhead::linear {
namespace {

constexpr size_t kGroup = 4;      // panels that are worked on together
constexpr size_t kMostRows = 96;  // that are worked on together; a whole number of tiles on every target

// The part of the product that one thread computes at a time.
struct Block {
  const float* input;          // [rows, in]
  const kernels::Pair* pairs;  // [rows, pairs of in]: the input in bfloat16, or null
  const float* panels;         // [num_panels, in, 16], or null
  const uint16_t* halves;      // or else the same in one of two types of 16 bits, or null
  bool bfloat16;               // which
  const std::byte* integers;   // or else the panels of this shape
  const IntegerPanelShape* shape;
  float* unpacked;        // room for kGroup panels as floats, behind it room for as many in pairs
  const float* bias;      // [columns] or null
  const float* factor;    // [rows, columns] or null
  const float* residual;  // [rows, columns] or null
  float* output;          // [rows, columns]
  size_t rows;            // at most kMostRows if panels are read as they are: others are unpacked once for all rows
  size_t columns;         // at most 16 * num_panels
  size_t in_features;
  size_t out_features;  // floats from row to row of output, factor and residual
  Activation activation;
};

}  // namespace
}  // namespace clearhead::linear
#endif

HWY_BEFORE_NAMESPACE();
namespace clearhead::linear {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace simd = kernels::HWY_NAMESPACE;
using simd::FloatTag;
using simd::FloatVec;

template <Activation kActivation>
HWY_INLINE FloatVec activate(FloatVec x) {
  if constexpr (kActivation == Activation::gelu) return simd::gelu(FloatTag(), x);
  if constexpr (kActivation == Activation::gelu_tanh) return simd::gelu_tanh(FloatTag(), x);
  if constexpr (kActivation == Activation::silu) return simd::silu(FloatTag(), x);
  if constexpr (kActivation == Activation::relu) return simd::relu(FloatTag(), x);
  return x;
}

// Bias, activation and residual on columns [first, first + count) of every row; dots [rows, dot_stride] holds the
// products.
template <Activation kActivation>
void finish(const Block& b, size_t first, size_t count, const float* dots, size_t dot_stride) {
  for (size_t row = 0; row < b.rows; ++row) {
    const float* dot = dots + row * dot_stride;
    float* output = b.output + row * b.out_features + first;
    const float* residual = b.residual == nullptr ? nullptr : b.residual + row * b.out_features + first;
    const auto act = [](FloatVec x) HWY_ATTR { return activate<kActivation>(x); };
    const auto act_bias = [](FloatVec x, FloatVec bias) HWY_ATTR { return activate<kActivation>(hn::Add(x, bias)); };
    if (b.bias != nullptr) {
      if (residual != nullptr)
        simd::map_elements(
            output, count,
            [&](FloatVec x, FloatVec bias, FloatVec r) HWY_ATTR { return hn::Add(act_bias(x, bias), r); }, dot,
            b.bias + first, residual);
      else
        simd::map_elements(output, count, act_bias, dot, b.bias + first);
    } else if (residual != nullptr) {
      simd::map_elements(
          output, count, [&](FloatVec x, FloatVec r) HWY_ATTR { return hn::Add(act(x), r); }, dot, residual);
    } else {
      simd::map_elements(output, count, act, dot);
    }
  }
}

// The same where the activation is multiplied with a factor, on the way back from where finish left it.
void multiply_factor(const Block& b, size_t first, size_t count, const float* dots, size_t dot_stride) {
  const auto multiply = [](FloatVec x, FloatVec factor) HWY_ATTR { return hn::Mul(x, factor); };
  const auto multiply_add = [](FloatVec x, FloatVec factor, FloatVec r)
                                HWY_ATTR { return hn::Add(hn::Mul(x, factor), r); };
  for (size_t row = 0; row < b.rows; ++row) {
    const float* dot = dots + row * dot_stride;
    const size_t at = row * b.out_features + first;
    if (b.residual != nullptr) {
      simd::map_elements(b.output + at, count, multiply_add, dot, b.factor + at, b.residual + at);
    } else {
      simd::map_elements(b.output + at, count, multiply, dot, b.factor + at);
    }
  }
}

void finish_any(const Block& b, size_t first, size_t count, float* dots, size_t dot_stride) {
  if (b.factor != nullptr) {
    Block activated = b;  // onto the products themselves
    if (b.bias != nullptr) activated.bias += first;
    activated.output = dots;
    activated.out_features = dot_stride;
    activated.factor = activated.residual = nullptr;
    finish_any(activated, 0, count, dots, dot_stride);
    return multiply_factor(b, first, count, dots, dot_stride);
  }
  switch (b.activation) {
    case Activation::none: return finish<Activation::none>(b, first, count, dots, dot_stride);
    case Activation::gelu: return finish<Activation::gelu>(b, first, count, dots, dot_stride);
    case Activation::gelu_tanh: return finish<Activation::gelu_tanh>(b, first, count, dots, dot_stride);
    case Activation::silu: return finish<Activation::silu>(b, first, count, dots, dot_stride);
    case Activation::relu: return finish<Activation::relu>(b, first, count, dots, dot_stride);
  }
}

constexpr size_t kFewRows = 2;  // so few are multiplied as the panels are unpacked

// One row of input times count panels that are no floats, from panel first of the block on; or the panels as floats.
HWY_INLINE void dot_stored(const Block& b, const float* input, size_t first, size_t count, float* output) {
  if (b.halves != nullptr) {
    const uint16_t* panels = b.halves + first * b.in_features * kernels::kPanelWidth;
    return halves::dot(b.bfloat16, input, panels, count, b.in_features, output);
  }
  integers::dot(input, b.integers + first * b.shape->panel_bytes(), count, *b.shape, output);
}

HWY_INLINE void unpack_stored(const Block& b, size_t first, size_t count) {
  const size_t panel = b.in_features * kernels::kPanelWidth;
  if (b.halves != nullptr) return halves::unpack(b.bfloat16, b.halves + first * panel, count * panel, b.unpacked);
  integers::unpack(b.integers + first * b.shape->panel_bytes(), count, *b.shape, b.unpacked);
}

kernels::Pair* pair_room(const Block& b) {
  return reinterpret_cast<kernels::Pair*>(b.unpacked + kGroup * b.in_features * kernels::kPanelWidth);
}

// The same as pairs.
HWY_INLINE void unpack_pairs(const Block& b, size_t first, size_t count) {
  const size_t panel = b.in_features * kernels::kPanelWidth;
  const size_t pair_panel = kernels::pair_count(b.in_features) * kernels::kPanelWidth;
  const bool narrow = b.halves != nullptr && b.bfloat16;
  if (b.panels == nullptr && !narrow) unpack_stored(b, first, count);
  const float* floats = b.panels != nullptr ? b.panels + first * panel : b.unpacked;
  for (size_t i = 0; i < count; ++i) {
    kernels::Pair* pairs = pair_room(b) + i * pair_panel;
    if (narrow) {
      halves::zip(b.halves + (first + i) * panel, b.in_features, pairs);
    } else {
      kernels::pack_columns_to_pairs(floats + i * panel, kernels::kPanelWidth, b.in_features, kernels::kPanelWidth,
                                     {pairs, pair_panel});
    }
  }
}

void multiply_pairs(const Block& b, size_t num_panels, float* dots) {
  const size_t pairs = kernels::pair_count(b.in_features);
  kernels::pair_product({.left = b.pairs,
                         .left_stride = pairs,
                         .panels = pair_room(b),
                         .panel_stride = pairs * kernels::kPanelWidth,
                         .output = dots,
                         .output_stride = kGroup * kernels::kPanelWidth,
                         .rows = b.rows,
                         .pairs = pairs,
                         .num_panels = num_panels});
}

// Columns [first, first + count) of some rows, with their panels, as floats or as they are stored.
void linear_columns(const Block& b, size_t first, size_t count) {
  alignas(64) float dots[kMostRows * kGroup * kernels::kPanelWidth];
  const size_t num_panels = kernels::panel_count(count);
  kernels::TileProduct product{.left = b.input,
                               .left_stride = b.in_features,
                               .panels = b.panels != nullptr ? b.panels + first * b.in_features : b.unpacked,
                               .panel_stride = b.in_features * kernels::kPanelWidth,
                               .output = dots,
                               .output_stride = kGroup * kernels::kPanelWidth,
                               .rows = b.rows,
                               .depth = b.in_features,
                               .num_panels = num_panels};
  for (size_t row = 0; row < b.rows; ++row) {  // the lines of output come while the product is computed
    for (size_t j = 0; j < count; j += 16) __builtin_prefetch(b.output + row * b.out_features + first + j, 1);
  }
  if (b.pairs != nullptr) {
    multiply_pairs(b, num_panels, dots);
  } else if (b.panels == nullptr && b.rows <= kFewRows) {
    for (size_t row = 0; row < b.rows; ++row) {
      dot_stored(b, b.input + row * b.in_features, first / kernels::kPanelWidth, num_panels,
                 dots + row * product.output_stride);
    }
  } else {
    simd::tile_product_inline(product);
  }
  finish_any(b, first, count, dots, product.output_stride);
}

// Panels are taken in groups that stay in the caches while all rows pass.
void linear_block(const Block& b) {
  const size_t row_blocks = (b.rows + kMostRows - 1) / kMostRows;
  for (size_t first = 0; first < b.columns; first += kGroup * kernels::kPanelWidth) {
    const size_t count = std::min(kGroup * kernels::kPanelWidth, b.columns - first);
    const size_t panel = first / kernels::kPanelWidth, num_panels = kernels::panel_count(count);
    if (b.pairs != nullptr) {
      unpack_pairs(b, panel, num_panels);
    } else if (b.panels == nullptr && b.rows > kFewRows) {
      unpack_stored(b, panel, num_panels);
    }
    for (size_t i = 0; i < row_blocks; ++i) {
      const size_t row = b.rows * i / row_blocks;
      Block part = b;
      part.input += row * b.in_features;
      if (part.pairs != nullptr) part.pairs += row * kernels::pair_count(b.in_features);
      part.output += row * b.out_features;
      if (part.factor != nullptr) part.factor += row * b.out_features;
      if (part.residual != nullptr) part.residual += row * b.out_features;
      part.rows = b.rows * (i + 1) / row_blocks - row;
      linear_columns(part, first, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::linear {
namespace {

HWY_EXPORT(linear_block);

// How rows and panels are cut into units of work. Nothing here changes a bit of the result.
struct Cut {
  size_t row_blocks, panel_blocks;
};

constexpr size_t kPanelStep = 4;  // panels that one tile may take together

// Input in one of two forms.
struct Input {
  const float* floats;         // [rows, in]
  const kernels::Pair* pairs;  // [rows, pairs of in], or null
  size_t rows;
};

// total_panels are those of all parts.
Cut cut(const Input& input, const PackedLinear& parameters, size_t total_panels) {
  constexpr size_t kUnitsPerThread = 4;          // enough that the last ones to finish do not wait long
  constexpr size_t kFloatsOfPanels = 96 * 1024;  // of a block: they stay in the second-level cache while all rows pass
  const size_t in_features = parameters.in_features(), num_panels = kernels::panel_count(parameters.out_features());
  const size_t steps = (num_panels + kPanelStep - 1) / kPanelStep;
  size_t row_blocks = (input.rows + kMostRows - 1) / kMostRows;
  if (parameters.panels().empty() || input.pairs != nullptr) {
    row_blocks = std::clamp<size_t>(kUnitsPerThread * base::num_threads() / steps, 1, row_blocks);
  }
  const size_t for_threads =
      (kUnitsPerThread * base::num_threads() * num_panels / total_panels + row_blocks - 1) / row_blocks;
  const size_t for_cache = row_blocks == 1 ? 1 : num_panels * in_features * kernels::kPanelWidth / kFloatsOfPanels;
  return {row_blocks, std::clamp<size_t>(std::max(for_threads, for_cache), 1, steps)};
}

// First panel of block i of num_blocks: blocks are as even as steps of kPanelStep allow.
size_t first_panel(size_t i, size_t num_blocks, size_t num_panels) {
  const size_t steps = (num_panels + kPanelStep - 1) / kPanelStep;
  return std::min(num_panels, steps * i / num_blocks * kPanelStep);
}

// Floats of the calling thread that stay from product to product.
float* unpacking_room(size_t count) {
  thread_local base::AlignedBuffer room;
  if (room.size() < count * sizeof(float)) room = base::AlignedBuffer(count * sizeof(float));
  return reinterpret_cast<float*>(room.data());
}

size_t panels_of(const LinearPart& part) { return kernels::panel_count(part.parameters->out_features()); }

// Numbers rounded to pairs, in room of the calling thread.
const kernels::Pair* rounded_input(std::span<const float> input, size_t rows) {
  constexpr size_t kRowsTogether = 16;
  thread_local base::AlignedBuffer room;
  const size_t in = input.size() / rows, pairs = kernels::pair_count(in);
  if (room.size() < rows * pairs * sizeof(kernels::Pair))
    room = base::AlignedBuffer(rows * pairs * sizeof(kernels::Pair));
  auto* rounded = reinterpret_cast<kernels::Pair*>(room.data());
  base::parallel_for((rows + kRowsTogether - 1) / kRowsTogether, [&](size_t block) {
    const size_t first = block * kRowsTogether, count = std::min(kRowsTogether, rows - first);
    kernels::round_to_pairs(input.data() + first * in, in, count, in, rounded + first * pairs, pairs);
  });
  return rounded;
}

// Room of the calling thread for a group of panels as floats and as pairs.
float* room_for(const PackedLinear& parameters, bool pairs) {
  if (!parameters.panels().empty() && !pairs) return nullptr;
  const size_t in = parameters.in_features(), count = in + (pairs ? kernels::pair_count(in) : 0);
  return unpacking_room(kGroup * kernels::kPanelWidth * count);
}

// Unit number of one part.
void compute_unit(const Input& input, const LinearPart& part, const Cut& pieces, size_t unit) {
  const PackedLinear& parameters = *part.parameters;
  const size_t in = parameters.in_features(), out = parameters.out_features(), num_panels = panels_of(part);
  const size_t row_block = unit % pieces.row_blocks, panel_block = unit / pieces.row_blocks;
  const size_t row = input.rows * row_block / pieces.row_blocks;
  const size_t row_end = input.rows * (row_block + 1) / pieces.row_blocks;
  const size_t panel = first_panel(panel_block, pieces.panel_blocks, num_panels);
  const size_t panel_end = first_panel(panel_block + 1, pieces.panel_blocks, num_panels);
  const size_t column = panel * kernels::kPanelWidth;
  const float *factor = part.epilogue.factor, *residual = part.epilogue.residual;
  const Block block{.input = input.floats + row * in,
                    .pairs = input.pairs == nullptr ? nullptr : input.pairs + row * kernels::pair_count(in),
                    .panels = parameters.panels().empty() ? nullptr : parameters.panels().data() + column * in,
                    .halves = parameters.halves().empty() ? nullptr : parameters.halves().panel(panel),
                    .bfloat16 = parameters.halves().bfloat16(),
                    .integers = parameters.integers().empty() ? nullptr : parameters.integers().panel(panel),
                    .shape = &parameters.integers().shape(),
                    .unpacked = room_for(parameters, input.pairs != nullptr),
                    .bias = parameters.bias().empty() ? nullptr : parameters.bias().data() + column,
                    .factor = factor == nullptr ? nullptr : factor + row * out + column,
                    .residual = residual == nullptr ? nullptr : residual + row * out + column,
                    .output = part.output.data() + row * out + column,
                    .rows = row_end - row,
                    .columns = std::min(out, panel_end * kernels::kPanelWidth) - column,
                    .in_features = in,
                    .out_features = out,
                    .activation = part.epilogue.activation};
  HWY_DYNAMIC_DISPATCH(linear_block)(block);
}

}  // namespace

void linear(std::span<const float> input, size_t rows, std::span<const LinearPart> parts, Compute compute) {
  size_t total_panels = 0;
  for (const LinearPart& part : parts) {
    assert(input.size() == rows * part.parameters->in_features());
    assert(part.output.size() == rows * part.parameters->out_features());
    total_panels += panels_of(part);
  }
  if (rows == 0 || total_panels == 0) return;
  const Input read{input.data(), compute == Compute::single ? nullptr : rounded_input(input, rows), rows};
  const auto cut_of = [&](const LinearPart& part) { return cut(read, *part.parameters, total_panels); };
  size_t units = 0;
  for (const LinearPart& part : parts) {
    const Cut pieces = cut_of(part);
    units += pieces.row_blocks * pieces.panel_blocks;
  }
  base::parallel_for(units, [&](size_t unit) {
    for (const LinearPart& part : parts) {
      const Cut pieces = cut_of(part);
      const size_t count = pieces.row_blocks * pieces.panel_blocks;
      if (unit < count) return compute_unit(read, part, pieces, unit);
      unit -= count;
    }
  });
}

void linear(std::span<const float> input, size_t rows, const PackedLinear& parameters, std::span<float> output,
            const Epilogue& epilogue, Compute compute) {
  const LinearPart part{&parameters, output, epilogue};
  linear(input, rows, {&part, 1}, compute);
}

}  // namespace clearhead::linear
#endif
