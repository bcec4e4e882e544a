// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/integer_panels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

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

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::linear {
namespace {

HWY_EXPORT(unpack_panels);

// Where things stand in a group.
struct Place {
  const IntegerPanelShape& shape;

  void set(std::byte* group, size_t lane, size_t k, unsigned q) const {
    std::byte* integers = group + shape.scale_bytes();
    if (!shape.type.four_bits) {
      integers[k * 16 + lane] = static_cast<std::byte>(q);
    } else {
      integers[k / 2 * 16 + lane] |= static_cast<std::byte>(k % 2 == 0 ? q : q << 4);
    }
  }
  unsigned get(const std::byte* group, size_t lane, size_t k) const {
    const std::byte* integers = group + shape.scale_bytes();
    if (!shape.type.four_bits) return std::to_integer<unsigned>(integers[k * 16 + lane]);
    return std::to_integer<unsigned>(integers[k / 2 * 16 + lane]) >> (k % 2 * 4) & 15;
  }
};

void set_float(std::byte* bytes, size_t index, float value) {
  std::memcpy(bytes + index * sizeof value, &value, sizeof value);
}

float get_float(const std::byte* bytes, size_t index) {
  float value;
  std::memcpy(&value, bytes + index * sizeof value, sizeof value);
  return value;
}

// One output into its lane of a panel.
void pack_row(tensor::BlockType type, std::span<const std::byte> row, const IntegerPanelShape& shape, size_t lane,
              std::byte* panel) {
  const size_t block_bytes = tensor::block_bytes(type), groups = tensor::block_values(type) / shape.type.group;
  const Place place{shape};
  tensor::SplitBlock split;
  for (size_t at = 0; at < row.size(); at += block_bytes) {
    tensor::split_block(type, row.subspan(at, block_bytes), split);
    for (size_t g = 0; g < groups; ++g, panel += shape.group_bytes()) {
      set_float(panel, lane, split.scale[g]);
      if (shape.type.has_addend) set_float(panel, 16 + lane, split.addend[g]);
      for (size_t k = 0; k < shape.type.group; ++k) place.set(panel, lane, k, split.q[g * shape.type.group + k]);
    }
  }
}

// A lane without output: zeros, whose scale is 0.
void pack_nothing(const IntegerPanelShape& shape, size_t lane, std::byte* panel) {
  const Place place{shape};
  for (size_t g = 0; g < shape.depth / shape.type.group; ++g, panel += shape.group_bytes()) {
    for (size_t k = 0; k < shape.type.group; ++k) place.set(panel, lane, k, static_cast<unsigned>(shape.type.middle));
  }
}

}  // namespace

IntegerPanels::IntegerPanels(const tensor::BlockView& weight, size_t outputs,
                             const std::function<size_t(size_t)>& row_of)
    : shape_{tensor::split_type(weight.type), weight.shape[1]} {
  const size_t count = kernels::panel_count(outputs);
  buffer_ = base::AlignedBuffer(count * shape_.panel_bytes());
  base::parallel_for(count, [&](size_t index) {
    std::byte* panel = buffer_.data() + index * shape_.panel_bytes();
    for (size_t lane = 0; lane < kernels::kPanelWidth; ++lane) {
      const size_t output = index * kernels::kPanelWidth + lane;
      if (output < outputs) {
        pack_row(weight.type, weight.row(row_of(output)), shape_, lane, panel);
      } else {
        pack_nothing(shape_, lane, panel);
      }
    }
  });
}

float IntegerPanels::at(size_t output, size_t input) const {
  const size_t lane = output % kernels::kPanelWidth;
  const std::byte* group = panel(output / kernels::kPanelWidth) + input / shape_.type.group * shape_.group_bytes();
  const auto q = static_cast<int>(Place{shape_}.get(group, lane, input % shape_.type.group));
  const float product = get_float(group, lane) * static_cast<float>(q - shape_.type.middle);
  return shape_.type.has_addend ? product + get_float(group, 16 + lane) : product;
}

void IntegerPanels::unpack(size_t first, size_t count, float* panels) const {
  HWY_DYNAMIC_DISPATCH(unpack_panels)(panel(first), count, shape_, panels);
}

}  // namespace clearhead::linear
#endif
