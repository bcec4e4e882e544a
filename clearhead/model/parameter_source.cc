// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/parameter_source.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::model {
namespace {

using tensor::TensorView;

// A range of outputs of a matrix or bias. Where the outputs lie side by side in every row, they are copied into
// storage.
TensorView cut_outputs(const TensorView& all, size_t output_axis, size_t first, size_t count, tensor::Tensor& storage) {
  const tensor::Shape& shape = all.shape();
  const size_t inner = shape.rank() == 1 ? 1 : shape[1], stored = shape[output_axis];
  if (count == stored) return all;
  const size_t size = tensor::size_of(all.dtype());
  if (output_axis == 0) {
    tensor::Shape part = shape.rank() == 1 ? tensor::Shape{count} : tensor::Shape{count, inner};
    return {all.dtype(), std::move(part), all.bytes().subspan(first * inner * size, count * inner * size)};
  }
  storage = tensor::Tensor(all.dtype(), {shape[0], count});
  for (size_t row = 0; row < shape[0]; ++row) {
    std::memcpy(storage.bytes().data() + row * count * size, all.bytes().data() + (row * stored + first) * size,
                count * size);
  }
  return storage;
}

}  // namespace

ParameterSource::ParameterSource(std::shared_ptr<const format::Checkpoint> checkpoint, std::string prefix)
    : checkpoint_(std::move(checkpoint)), prefix_(std::move(prefix)) {}

std::string ParameterSource::first_of(std::initializer_list<std::string> names) const {
  for (const std::string& name : names) {
    if (contains(name)) return name;
  }
  return *names.begin();
}

TensorView ParameterSource::find(const std::string& name, const tensor::Shape& shape) {
  const std::string full = prefix_ + name;
  asked_for_.insert(full);
  const TensorView view = checkpoint_->view(full);
  if (view.shape() != shape) {
    base::fail("model file", fmt::format("{} of shape {}, as config.json implies", base::quoted(full), shape.text()),
               "shape " + view.shape().text());
  }
  if (!tensor::is_floating(view.dtype())) {
    base::fail("model file", fmt::format("{} of a floating type", base::quoted(full)),
               std::string(tensor::name_of(view.dtype())));
  }
  return view;
}

tensor::Tensor ParameterSource::take(const std::string& name, const tensor::Shape& shape) {
  const TensorView view = find(name, shape);
  tensor::Tensor values = tensor::to_dtype(view, tensor::DType::f32);
  checkpoint_->release_pages(view.bytes());
  return values;
}

linear::PackedLinear ParameterSource::linear(const StoredLinear& stored) {
  const size_t all = stored.stored_outputs == 0 ? stored.outputs : stored.stored_outputs;
  if (stored.first_output > all || stored.outputs > all - stored.first_output) {
    base::fail("model file",
               fmt::format("outputs {} to {} within the {} of {}", stored.first_output,
                           stored.first_output + stored.outputs, all, base::quoted(prefix_ + stored.weight)),
               "outputs that are not there");
  }
  const bool turned = stored.orientation == Orientation::in_out;
  const TensorView weight =
      find(stored.weight, turned ? tensor::Shape{stored.inputs, all} : tensor::Shape{all, stored.inputs});
  tensor::Tensor weight_storage, bias_storage;
  std::optional<TensorView> bias;
  if (!stored.bias.empty()) {
    bias = cut_outputs(find(stored.bias, {all}), 0, stored.first_output, stored.outputs, bias_storage);
  }
  linear::PackedLinear packed(cut_outputs(weight, turned ? 1 : 0, stored.first_output, stored.outputs, weight_storage),
                              bias, turned);
  checkpoint_->release_pages(weight.bytes());
  return packed;
}

NormParameters ParameterSource::norm(const std::string& gain, const std::string& bias, size_t d_model) {
  return {take(gain, {d_model}), take(bias, {d_model})};
}

EmbeddingTable ParameterSource::table(const std::string& name, size_t rows, size_t d_model) {
  const TensorView table = find(name, {rows, d_model});
  const size_t row_bytes = d_model * tensor::size_of(table.dtype());
  return {rows, [checkpoint = checkpoint_, table, row_bytes](size_t id, std::span<float> row) {
            const TensorView stored(table.dtype(), {row.size()}, table.bytes().subspan(id * row_bytes, row_bytes));
            tensor::copy_to_float(stored, row);
          }};
}

std::vector<std::string> ParameterSource::unused() const {
  std::vector<std::string> names;
  for (const std::string& name : checkpoint_->names()) {
    if (!asked_for_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace clearhead::model
