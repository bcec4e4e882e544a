// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

tensor::TensorView Inputs::required(const std::string& name) {
  const std::optional<tensor::TensorView> found = find(name);
  if (!found) base::refuse(where_, fmt::format("an input {}", name), "none of that name in the file");
  return *found;
}

std::optional<tensor::TensorView> Inputs::find(const std::string& name) {
  asked_.insert(name);
  if (!file_.contains(name)) return std::nullopt;
  return file_.view(name);
}

tensor::TensorView Inputs::floating(const std::string& name, const tensor::TensorView& view) const {
  if (tensor::is_floating(view.dtype())) return view;
  base::refuse(where_, fmt::format("{} of type F32, F16, BF16 or F64", name),
               std::string(tensor::name_of(view.dtype())));
}

tensor::TensorView Inputs::required_floating(const std::string& name) { return floating(name, required(name)); }

std::optional<tensor::TensorView> Inputs::find_floating(const std::string& name) {
  const std::optional<tensor::TensorView> found = find(name);
  if (found) floating(name, *found);
  return found;
}

std::optional<std::vector<int64_t>> Inputs::find_counts(const std::string& name, size_t batch) {
  const std::optional<tensor::TensorView> found = find(name);
  if (!found) return std::nullopt;
  if (found->dtype() != tensor::DType::i64) {
    base::refuse(where_, fmt::format("{} of type I64", name), std::string(tensor::name_of(found->dtype())));
  }
  check_shape(name, *found, {batch}, "[batch]");
  const tensor::Tensor counts = tensor::clone(*found);
  return std::vector<int64_t>(counts.as<int64_t>().begin(), counts.as<int64_t>().end());
}

void Inputs::check_all_known() const {
  for (const format::TensorEntry& entry : file_.entries()) {
    if (asked_.contains(entry.name)) continue;
    base::refuse(where_, fmt::format("an input of {}", fmt::join(asked_, ", ")), base::quoted(entry.name));
  }
}

void Inputs::check_shape(std::string_view name, const tensor::TensorView& view, const tensor::Shape& shape,
                         std::string_view meaning) const {
  if (!(view.shape() == shape)) refuse_shape(name, view, fmt::format("{} = {}", meaning, shape.text()));
}

void Inputs::refuse_shape(std::string_view name, const tensor::TensorView& view, std::string_view expected) const {
  base::refuse(where_, fmt::format("{} of shape {}", name, expected), view.shape().text());
}

Outputs::Outputs(const std::string& where, const std::vector<std::string>& wanted,
                 std::span<const std::string_view> names, std::span<const std::string_view> defaults)
    : wanted_(wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!contains(names, wanted[i])) {
      base::refuse(where, fmt::format("an output of {}", fmt::join(names, ", ")), base::quoted(wanted[i]));
    }
    if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted[i]) !=
        wanted.begin() + static_cast<std::ptrdiff_t>(i)) {
      base::refuse(where, "each output named once", fmt::format("{} twice", wanted[i]));
    }
  }
  if (wanted_.empty()) wanted_.assign(defaults.begin(), defaults.end());
}

bool Outputs::wants(std::string_view name) const {
  return std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
}

void Outputs::add(std::string_view name, const tensor::TensorView& values, tensor::DType dtype) {
  if (wants(name)) tensors_[std::string(name)] = tensor::to_dtype(values, dtype);
}

void Outputs::write(const std::filesystem::path& path) const {
  std::vector<format::NamedTensor> named;
  for (const std::string& name : wanted_) named.push_back({name, tensors_.at(name).view()});
  format::write_safetensors(path, named);
}

tensor::Tensor to_real(const tensor::TensorView& view, tensor::DType real) { return tensor::to_dtype(view, real); }

tensor::DType real_of(tensor::DType first) {
  return first == tensor::DType::f64 ? tensor::DType::f64 : tensor::DType::f32;
}

tensor::Tensor from_doubles(std::span<const double> values, tensor::Shape shape) {
  return tensor::clone({tensor::DType::f64, std::move(shape), std::as_bytes(values)});
}

tensor::Tensor join_positions(const tensor::Tensor& a, const tensor::Tensor& b) {
  tensor::Tensor joined(b.dtype(), {b.shape()[0], a.shape()[1] + b.shape()[1], b.shape()[2], b.shape()[3]});
  const size_t batch = b.shape()[0];
  auto to = joined.bytes().begin();
  for (size_t row = 0; row < batch; ++row) {
    for (const tensor::Tensor* part : {&a, &b}) {
      const size_t size = part->bytes().size() / batch;
      to = std::ranges::copy(part->bytes().subspan(row * size, size), to).out;
    }
  }
  return joined;
}

tensor::Tensor swap_middle_axes(const tensor::Tensor& values) {
  const tensor::Shape& shape = values.shape();
  tensor::Tensor swapped(values.dtype(), {shape[0], shape[2], shape[1], shape[3]});
  const size_t row = shape[3] * tensor::size_of(values.dtype());  // bytes
  for (size_t a = 0; a < shape[0]; ++a) {
    for (size_t b = 0; b < shape[1]; ++b) {
      for (size_t c = 0; c < shape[2] && row > 0; ++c) {
        std::memcpy(swapped.bytes().data() + ((a * shape[2] + c) * shape[1] + b) * row,
                    values.bytes().data() + ((a * shape[1] + b) * shape[2] + c) * row, row);
      }
    }
  }
  return swapped;
}

}  // namespace clearhead::apps
