// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/integer_panels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"
#include "clearhead/tensor/dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/linear/integer_panels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/linear/integer_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::linear {
namespace HWY_NAMESPACE {

void unpack_panels(const std::byte* panels, size_t count, const IntegerPanelShape& shape, float* floats) {
  integers::unpack(panels, count, shape, floats);
}

void pack_integers(const uint8_t* q, size_t group, bool four_bits, uint8_t* packed) {
  integers::pack(q, group, four_bits, packed);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::linear {
namespace {

HWY_EXPORT(unpack_panels);
HWY_EXPORT(pack_integers);

// The integer of one output and input of a group.
unsigned integer_at(const IntegerPanelShape& shape, const std::byte* group, size_t lane, size_t k) {
  const std::byte* integers = group + shape.scale_bytes();
  if (!shape.type.four_bits) return std::to_integer<unsigned>(integers[k * 16 + lane]);
  return std::to_integer<unsigned>(integers[k / 2 * 16 + lane]) >> (k % 2 * 4) & 15;
}

// Number index among the scales and addends of a group.
void set_scale(const IntegerPanelShape& shape, std::byte* group, size_t index, float value) {
  if (!shape.type.half_scales) {
    std::memcpy(group + index * sizeof value, &value, sizeof value);
  } else {
    const tensor::Half half = tensor::to_half(value);
    std::memcpy(group + index * sizeof half, &half, sizeof half);
  }
}

float scale_at(const IntegerPanelShape& shape, const std::byte* group, size_t index) {
  float value;
  tensor::Half half;
  if (!shape.type.half_scales) {
    std::memcpy(&value, group + index * sizeof value, sizeof value);
    return value;
  }
  std::memcpy(&half, group + index * sizeof half, sizeof half);
  return tensor::to_float(half);
}

// The rows of a weight that one panel holds, and what a block of each is split into.
struct PanelRows {
  std::array<std::span<const std::byte>, kernels::kPanelWidth> rows;  // empty: no output stands there
  std::array<std::array<uint8_t, tensor::kMaxBlockValues>, kernels::kPanelWidth> q;
  tensor::SplitBlock split;

  // Splits block index of every row; their scales go to the groups of panel. A lane without output gets zeros.
  void split_blocks(tensor::BlockType type, size_t index, const IntegerPanelShape& shape, std::byte* panel) {
    const size_t block_bytes = tensor::block_bytes(type), values = tensor::block_values(type);
    for (size_t lane = 0; lane < rows.size(); ++lane) {
      if (rows[lane].empty()) {
        std::fill_n(q[lane].begin(), values, static_cast<uint8_t>(shape.type.middle));
        continue;
      }
      tensor::split_block(type, rows[lane].subspan(index * block_bytes, block_bytes), split);
      std::copy_n(split.q.begin(), values, q[lane].begin());
      std::byte* group = panel;
      for (size_t g = 0; g < values / shape.type.group; ++g, group += shape.group_bytes()) {
        set_scale(shape, group, lane, split.scale[g]);
        if (shape.type.has_addend) set_scale(shape, group, 16 + lane, split.addend[g]);
      }
    }
  }
};

void pack_panel(tensor::BlockType type, PanelRows& rows, const IntegerPanelShape& shape, std::byte* panel) {
  const size_t values = tensor::block_values(type);
  for (size_t index = 0; index < shape.depth / values; ++index) {
    rows.split_blocks(type, index, shape, panel);
    for (size_t first = 0; first < values; first += shape.type.group, panel += shape.group_bytes()) {
      HWY_DYNAMIC_DISPATCH(pack_integers)
      (&rows.q[0][first], shape.type.group, shape.type.four_bits,
       reinterpret_cast<uint8_t*>(panel) + shape.scale_bytes());
    }
  }
}

}  // namespace

IntegerPanels::IntegerPanels(const tensor::BlockView& weight, size_t outputs,
                             const std::function<size_t(size_t)>& row_of)
    : shape_{tensor::split_type(weight.type), weight.shape[1]} {
  const size_t count = kernels::panel_count(outputs);
  buffer_ = base::AlignedBuffer::lasting(count * shape_.panel_bytes());
  base::parallel_for(count, [&](size_t index) {
    PanelRows rows;
    for (size_t lane = 0; lane < kernels::kPanelWidth; ++lane) {
      const size_t output = index * kernels::kPanelWidth + lane;
      if (output < outputs) rows.rows[lane] = weight.row(row_of(output));
    }
    pack_panel(weight.type, rows, shape_, buffer_.data() + index * shape_.panel_bytes());
  });
}

float IntegerPanels::at(size_t output, size_t input) const {
  const size_t lane = output % kernels::kPanelWidth;
  const std::byte* group = panel(output / kernels::kPanelWidth) + input / shape_.type.group * shape_.group_bytes();
  const auto q = static_cast<int>(integer_at(shape_, group, lane, input % shape_.type.group));
  const float product = scale_at(shape_, group, lane) * static_cast<float>(q - shape_.type.middle);
  return shape_.type.has_addend ? product + scale_at(shape_, group, 16 + lane) : product;
}

void IntegerPanels::unpack(size_t first, size_t count, float* panels) const {
  HWY_DYNAMIC_DISPATCH(unpack_panels)(panel(first), count, shape_, panels);
}

}  // namespace clearhead::linear
#endif
