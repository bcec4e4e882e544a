// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/packed_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::linear {
namespace {

using kernels::kPanelWidth;
using tensor::TensorView;

constexpr size_t kDepthBlock = 64;  // inner elements that are brought into a panel at a time
constexpr size_t kPanelsPerUnit = 4;

size_t out_of(const LinearParameters& part) { return part.weight.shape()[part.transposed ? 1 : 0]; }
size_t in_of(const LinearParameters& part) { return part.weight.shape()[part.transposed ? 0 : 1]; }

void check(const LinearParameters& part) {
  const auto& shape = part.weight.shape();
  if (!tensor::is_floating(part.weight.dtype())) {
    base::fail("linear", "a weight of type F32, F16, BF16 or F64", std::string(tensor::name_of(part.weight.dtype())));
  }
  if (shape.rank() != 2 || shape[0] == 0 || shape[1] == 0) {
    base::fail("linear", part.transposed ? "a weight [in, out], neither 0" : "a weight [out, in], neither 0",
               shape.text());
  }
  if (!part.bias) return;
  if (!tensor::is_floating(part.bias->dtype())) {
    base::fail("linear", "a bias of type F32, F16, BF16 or F64", std::string(tensor::name_of(part.bias->dtype())));
  }
  if (part.bias->shape() != tensor::Shape{out_of(part)}) {
    base::fail("linear", fmt::format("a bias [{}]", out_of(part)), part.bias->shape().text());
  }
}

// Element i of bytes that need not be aligned.
template <class T>
float load(const std::byte* bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  if constexpr (std::is_same_v<T, float>)
    return value;
  else if constexpr (std::is_same_v<T, double>)
    return static_cast<float>(value);
  else
    return tensor::to_float(value);
}

// Where the elements of one output, or of one element of the input, lie in a file.
struct Line {
  const std::byte* bytes = nullptr;  // the output's first element
  size_t stride = 0;                 // bytes from one input to the next
  tensor::DType dtype = tensor::DType::f32;
};

template <class T>
void gather(const Line& line, size_t first, size_t count, float* into) {
  const std::byte* bytes = line.bytes + first * line.stride;
  for (size_t k = 0; k < count; ++k) into[k * kPanelWidth] = load<T>(bytes + k * line.stride, 0);
}

// Elements [first, first + count) of one output into its column of a panel: as they are, or as floats.
void gather_any(const Line& line, size_t first, size_t count, uint16_t* into) {
  const std::byte* bytes = line.bytes + first * line.stride;
  for (size_t k = 0; k < count && line.bytes != nullptr; ++k) {
    std::memcpy(&into[k * kPanelWidth], bytes + k * line.stride, sizeof *into);
  }
}

void gather_any(const Line& line, size_t first, size_t count, float* into) {
  if (line.bytes == nullptr) {
    for (size_t k = 0; k < count; ++k) into[k * kPanelWidth] = 0.0f;
    return;
  }
  switch (line.dtype) {
    case tensor::DType::f16: return gather<tensor::Half>(line, first, count, into);
    case tensor::DType::bf16: return gather<tensor::BFloat16>(line, first, count, into);
    case tensor::DType::f64: return gather<double>(line, first, count, into);
    default: return gather<float>(line, first, count, into);
  }
}

// The line of one output of the stack; without bytes past the last.
Line line_of(std::span<const LinearParameters> parts, size_t out) {
  for (const LinearParameters& part : parts) {
    if (out >= out_of(part)) {
      out -= out_of(part);
      continue;
    }
    const size_t size = tensor::size_of(part.weight.dtype());
    const size_t first = part.transposed ? out : out * in_of(part), step = part.transposed ? out_of(part) : 1;
    return {part.weight.bytes().data() + first * size, step * size, part.weight.dtype()};
  }
  return {};
}

// Packs one panel: outputs [16 panel, 16 panel + 16). Shapes: packed [depth, 16]; of 16 bits, zeros at first.
template <class Number>
void pack_panel(std::span<const LinearParameters> parts, size_t panel, size_t depth, Number* packed) {
  std::array<Line, kPanelWidth> lines;
  for (size_t i = 0; i < kPanelWidth; ++i) lines[i] = line_of(parts, panel * kPanelWidth + i);
  for (size_t first = 0; first < depth; first += kDepthBlock) {
    const size_t count = std::min(kDepthBlock, depth - first);
    for (size_t i = 0; i < kPanelWidth; ++i) gather_any(lines[i], first, count, packed + first * kPanelWidth + i);
  }
}

// Packs all panels, panel i at place_of(i), on all threads.
template <class PlaceOf>
void pack_panels(std::span<const LinearParameters> parts, size_t num_panels, size_t depth, const PlaceOf& place_of) {
  base::parallel_for((num_panels + kPanelsPerUnit - 1) / kPanelsPerUnit, [&](size_t unit) {
    const size_t end = std::min(num_panels, (unit + 1) * kPanelsPerUnit);
    for (size_t panel = unit * kPanelsPerUnit; panel < end; ++panel) {
      pack_panel(parts, panel, depth, place_of(panel));
    }
  });
}

// Whether all parts are of one type of 16 bits.
bool all_halves(std::span<const LinearParameters> parts) {
  const tensor::DType dtype = parts[0].weight.dtype();
  return (dtype == tensor::DType::f16 || dtype == tensor::DType::bf16) &&
         std::ranges::all_of(parts, [&](const LinearParameters& part) { return part.weight.dtype() == dtype; });
}

}  // namespace

PackedLinear::PackedLinear(const TensorView& weight, const std::optional<TensorView>& bias, bool transposed) {
  const LinearParameters part{weight, bias, transposed};
  *this = stack({&part, 1});
}

PackedLinear PackedLinear::stack(std::span<const LinearParameters> parts) {
  if (parts.empty()) base::fail("linear", "at least one part", "none");
  PackedLinear packed;
  bool has_bias = false;
  for (const LinearParameters& part : parts) {
    check(part);
    if (in_of(part) != in_of(parts[0])) {
      base::fail("linear", fmt::format("parts of {} inputs like the first", in_of(parts[0])),
                 fmt::format("a part of {}", in_of(part)));
    }
    packed.out_features_ += out_of(part);
    has_bias = has_bias || part.bias.has_value();
  }
  packed.in_features_ = in_of(parts[0]);
  if (has_bias) {
    packed.bias_.resize(packed.out_features_);
    size_t first = 0;
    for (const LinearParameters& part : parts) {
      if (part.bias) tensor::copy_to_float(*part.bias, std::span(packed.bias_).subspan(first, out_of(part)));
      first += out_of(part);
    }
  }

  const size_t num_panels = kernels::panel_count(packed.out_features_), panel_size = packed.in_features_ * kPanelWidth;
  const auto bytes = base::checked_product(std::array{num_panels, panel_size, sizeof(float)});
  if (!bytes) base::fail("linear", "a size that fits 64 bits", fmt::format("{} outputs", packed.out_features_));
  if (all_halves(parts)) {
    packed.halves_ =
        HalfPanels(packed.out_features_, packed.in_features_, parts[0].weight.dtype() == tensor::DType::bf16);
    pack_panels(parts, num_panels, packed.in_features_, [&](size_t panel) { return packed.halves_.panel(panel); });
    return packed;
  }
  packed.panels_.reset(static_cast<float*>(std::aligned_alloc(base::AlignedBuffer::kAlignment, *bytes)));
  if (!packed.panels_) throw std::bad_alloc();
  float* panels = packed.panels_.get();
  pack_panels(parts, num_panels, packed.in_features_, [&](size_t panel) { return panels + panel * panel_size; });
  return packed;
}

PackedLinear PackedLinear::from_blocks(const tensor::BlockView& weight, const std::optional<TensorView>& bias,
                                       size_t outputs, const std::function<size_t(size_t)>& row_of) {
  if (weight.shape.rank() != 2 || weight.shape[0] == 0 || weight.shape[1] == 0 || outputs == 0) {
    base::fail("linear", "a weight [out, in], neither 0", weight.shape.text());
  }
  PackedLinear packed;
  packed.in_features_ = weight.shape[1];
  packed.out_features_ = outputs;
  packed.integers_ = IntegerPanels(weight, outputs, row_of);
  if (!bias) return packed;
  std::vector<float> all(bias->elements());
  tensor::copy_to_float(*bias, all);
  for (size_t i = 0; i < outputs; ++i) packed.bias_.push_back(all.at(row_of(i)));
  return packed;
}

size_t PackedLinear::bytes() const {
  return panels().size_bytes() + halves_.bytes() + integers_.bytes() + bias_.size() * sizeof(float);
}

std::span<const float> PackedLinear::panels_as_floats(std::vector<float>& room) const {
  if (integers_.empty() && halves_.empty()) return panels();
  const size_t count = kernels::panel_count(out_features_);
  room.resize(count * in_features_ * kPanelWidth);
  integers_.empty() ? halves_.unpack(0, count, room.data()) : integers_.unpack(0, count, room.data());
  return room;
}

std::span<const float> PackedLinear::panels() const {
  if (panels_ == nullptr) return {};
  return {panels_.get(), kernels::panel_count(out_features_) * in_features_ * kPanelWidth};
}

float PackedLinear::weight_at(size_t out, size_t in) const {
  if (!integers_.empty()) return integers_.at(out, in);
  if (!halves_.empty()) return halves_.at(out, in);
  return panels()[(out / kPanelWidth * in_features_ + in) * kPanelWidth + out % kPanelWidth];
}

}  // namespace clearhead::linear
