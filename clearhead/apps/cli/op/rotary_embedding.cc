// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"
#include "clearhead/kernels/reference.h"
#include "clearhead/kernels/rotary.h"

namespace clearhead::apps {
namespace {

using tensor::DType;

constexpr std::string_view kWhere = "op rotary_embedding";

struct Settings {
  kernels::RotaryLayout layout = kernels::RotaryLayout::halves;
  std::optional<size_t> num_heads;
  size_t rotary_dim = 0;  // 0: the whole head
};

Settings read_settings(Attributes& attributes) {
  Settings settings;
  if (attributes.flag("interleaved").value_or(false)) settings.layout = kernels::RotaryLayout::interleaved;
  const auto count = [&](const std::string& name) {
    const int64_t value = attributes.integer(name).value_or(0);
    if (value < 0) base::refuse(kWhere, fmt::format("attribute {} to be at least 0", name), fmt::format("{}", value));
    return static_cast<size_t>(value);
  };
  settings.rotary_dim = count("rotary_embedding_dim");
  if (const size_t heads = count("num_heads"); heads != 0) settings.num_heads = heads;
  attributes.check_all_known();
  return settings;
}

// X with its axes told apart, as F32 or F64 [batch, len, heads, dim].
struct Heads {
  tensor::Tensor values;
  size_t batch, len, heads, dim;
  bool flat;
};

Heads read_heads(Inputs& inputs, const Settings& settings) {
  const tensor::TensorView view = inputs.required_floating("X");
  const tensor::Shape& shape = view.shape();
  const DType real = real_of(view.dtype());
  if (shape.rank() == 4) {
    if (settings.num_heads && *settings.num_heads != shape[1]) {
      inputs.refuse_shape("X", view, fmt::format("[batch, num_heads = {}, len, dim]", *settings.num_heads));
    }
    return {swap_middle_axes(to_real(view, real)), shape[0], shape[2], shape[1], shape[3], false};
  }
  if (shape.rank() != 3) inputs.refuse_shape("X", view, "[batch, heads, len, dim] or [batch, len, heads * dim]");
  if (!settings.num_heads) base::refuse(kWhere, "attribute num_heads beside a 3D input", "none");
  const size_t heads = *settings.num_heads;
  if (shape[2] % heads != 0) {
    inputs.refuse_shape("X", view, fmt::format("[batch, len, a multiple of num_heads = {}]", heads));
  }
  return {to_real(view, real), shape[0], shape[1], heads, shape[2] / heads, true};
}

// Cosines or sines, and which row of them a token takes.
struct Angles {
  tensor::Tensor cosines, sines;  // [rows, rotary_dim / 2]
  std::vector<size_t> rows;       // [batch * len]
};

Angles read_angles(Inputs& inputs, const Heads& x, size_t half) {
  const auto positions = inputs.find("position_ids");
  const tensor::TensorView cosines = inputs.required_floating("cos_cache");
  const tensor::TensorView sines = inputs.required_floating("sin_cache");
  Angles angles;
  const size_t tokens = x.batch * x.len;
  if (positions) {
    if (cosines.shape().rank() != 2) inputs.refuse_shape("cos_cache", cosines, "[positions, rotary dim / 2]");
    const size_t count = cosines.shape()[0];
    inputs.check_shape("cos_cache", cosines, {count, half}, "[positions, rotary dim / 2]");
    inputs.check_shape("sin_cache", sines, {count, half}, "[positions, rotary dim / 2]");
    if (positions->dtype() != DType::i64) {
      base::refuse(kWhere, "position_ids of type I64", std::string(tensor::name_of(positions->dtype())));
    }
    inputs.check_shape("position_ids", *positions, {x.batch, x.len}, "[batch, len]");
    const tensor::Tensor ids = tensor::clone(*positions);
    for (int64_t id : ids.as<int64_t>()) {
      if (id < 0 || static_cast<uint64_t>(id) >= count) {
        base::refuse(kWhere, fmt::format("position_ids from 0 to below {}, the rows of cos_cache", count),
                     fmt::format("{}", id));
      }
      angles.rows.push_back(static_cast<size_t>(id));
    }
  } else {
    inputs.check_shape("cos_cache", cosines, {x.batch, x.len, half}, "[batch, len, rotary dim / 2]");
    inputs.check_shape("sin_cache", sines, {x.batch, x.len, half}, "[batch, len, rotary dim / 2]");
    for (size_t token = 0; token < tokens; ++token) angles.rows.push_back(token);
  }
  angles.cosines = to_real(cosines, x.values.dtype());
  angles.sines = to_real(sines, x.values.dtype());
  return angles;
}

template <class Real>
void rotate_all(Heads& x, const Angles& angles, size_t half, kernels::RotaryLayout layout) {
  const auto values = x.values.as<Real>();
  const std::span<const Real> cosines = angles.cosines.as<Real>(), sines = angles.sines.as<Real>();
  for (size_t row = 0; row < x.batch * x.len * x.heads; ++row) {
    const size_t start = angles.rows[row / x.heads] * half;
    const auto head = values.subspan(row * x.dim, x.dim);
    const auto cosine = cosines.subspan(start, half), sine = sines.subspan(start, half);
    if constexpr (std::is_same_v<Real, float>) {
      kernels::rotate(head, cosine, sine, layout);
    } else {
      kernels::reference::rotate(head, cosine, sine, layout == kernels::RotaryLayout::interleaved);
    }
  }
}

}  // namespace

Outputs rotary_embedding_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes) {
  const Settings settings = read_settings(attributes);
  const DType first = inputs.required_floating("X").dtype();
  Heads x = read_heads(inputs, settings);
  const size_t rotary_dim = settings.rotary_dim == 0 ? x.dim : settings.rotary_dim;
  if (rotary_dim % 2 != 0 || rotary_dim > x.dim) {
    base::refuse(kWhere, fmt::format("an even number of rotated elements, at most {}", x.dim),
                 fmt::format("{}", rotary_dim));
  }
  const size_t half = rotary_dim / 2;
  const Angles angles = read_angles(inputs, x, half);
  inputs.check_all_known();
  const std::array<std::string_view, 1> names = {"Y"};
  Outputs outputs(std::string(kWhere), request.outputs, names, names);
  if (real_of(first) == DType::f64) {
    rotate_all<double>(x, angles, half, settings.layout);
  } else {
    rotate_all<float>(x, angles, half, settings.layout);
  }
  outputs.add("Y", x.flat ? std::move(x.values) : swap_middle_axes(x.values), first);
  return outputs;
}

}  // namespace clearhead::apps
