// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/parameter_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"

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

// Outputs in the order that stored.row gives, of a matrix [stored, inputs] or a bias [stored].
TensorView gather_rows(const TensorView& all, const StoredLinear& stored, tensor::Tensor& storage) {
  const tensor::Shape& shape = all.shape();
  const size_t bytes = (shape.rank() == 1 ? 1 : shape[1]) * tensor::size_of(all.dtype());
  storage = tensor::Tensor(all.dtype(),
                           shape.rank() == 1 ? tensor::Shape{stored.outputs} : tensor::Shape{stored.outputs, shape[1]});
  for (size_t i = 0; i < stored.outputs; ++i) {
    std::memcpy(storage.bytes().data() + i * bytes, all.bytes().data() + stored.row(i) * bytes, bytes);
  }
  return storage;
}

// tensor::first_bad_scale on all threads.
std::optional<size_t> first_bad_scale(const tensor::BlockView& blocks) {
  constexpr size_t kBlocks = 1 << 14;  // that are looked through together
  const size_t block_bytes = tensor::block_bytes(blocks.type), count = blocks.bytes.size() / block_bytes;
  std::vector<std::optional<size_t>> bad((count + kBlocks - 1) / kBlocks);
  base::parallel_for(bad.size(), [&](size_t part) {
    const size_t first = part * kBlocks, blocks_here = std::min(kBlocks, count - first);
    bad[part] =
        tensor::first_bad_scale(blocks.type, blocks.bytes.subspan(first * block_bytes, blocks_here * block_bytes));
    if (bad[part]) *bad[part] += first;
  });
  const auto found = std::ranges::find_if(bad, [](const auto& one) { return one.has_value(); });
  return found == bad.end() ? std::nullopt : *found;
}

// A matrix [outputs, inputs] or a bias [outputs], every output times its gain, each product rounded once.
TensorView scaled_outputs(const TensorView& values, std::span<const float> gains, tensor::Tensor& storage) {
  tensor::Tensor scaled = tensor::to_dtype(values, tensor::DType::f32);
  const std::span<float> all = scaled.as<float>();
  const size_t inner = all.size() / std::max<size_t>(gains.size(), 1);
  for (size_t i = 0; i < all.size(); ++i) all[i] *= gains[i / inner];
  storage = std::move(scaled);
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

void ParameterSource::check(const std::string& name, const tensor::Shape& shape) {
  const std::string full = prefix_ + name;
  asked_for_.insert(full);
  const format::TensorEntry& entry = checkpoint_->entry(full);
  if (entry.shape != shape) {
    base::fail(checkpoint_->where(),
               fmt::format("{} of shape {}, as {} implies", base::quoted(full), shape.text(),
                           is_gguf() ? "the metadata" : "config.json"),
               "shape " + entry.shape.text());
  }
  if (entry.block_type) {
    const tensor::BlockView blocks = checkpoint_->blocks(full);
    if (const auto bad = first_bad_scale(blocks)) {
      base::fail(checkpoint_->where(), fmt::format("{} with scales that are numbers", base::quoted(full)),
                 fmt::format("another in block {}", *bad), "the file is damaged");
    }
  } else if (const TensorView view = checkpoint_->view(full); !tensor::is_floating(view.dtype())) {
    base::fail(checkpoint_->where(), fmt::format("{} of a floating type", base::quoted(full)),
               std::string(tensor::name_of(view.dtype())));
  }
}

TensorView ParameterSource::find(const std::string& name, const tensor::Shape& shape, tensor::Tensor& storage) {
  check(name, shape);
  const std::string full = prefix_ + name;
  if (!checkpoint_->entry(full).block_type) return checkpoint_->view(full);
  const tensor::BlockView blocks = checkpoint_->blocks(full);
  storage = tensor::Tensor(shape);
  const size_t columns = shape[shape.rank() - 1], rows = shape.elements() / std::max<size_t>(columns, 1);
  const std::span<float> values = storage.as<float>();
  base::parallel_for(rows, [&](size_t row) {
    tensor::decode_blocks(blocks.type, blocks.row(row), values.subspan(row * columns, columns));
  });
  return storage;
}

void ParameterSource::release(const std::string& name) {
  const std::string full = prefix_ + name;
  const bool blocks = checkpoint_->entry(full).block_type.has_value();
  checkpoint_->release_pages(blocks ? checkpoint_->blocks(full).bytes : checkpoint_->view(full).bytes());
}

tensor::Tensor ParameterSource::take(const std::string& name, const tensor::Shape& shape) {
  tensor::Tensor storage;
  tensor::Tensor values = tensor::to_dtype(find(name, shape, storage), tensor::DType::f32);
  release(name);
  return values;
}

linear::PackedLinear ParameterSource::linear(const StoredLinear& stored) {
  const size_t all = stored.stored_outputs == 0 ? stored.outputs : stored.stored_outputs;
  if (stored.first_output > all || stored.outputs > all - stored.first_output) {
    base::fail(checkpoint_->where(),
               fmt::format("outputs {} to {} within the {} of {}", stored.first_output,
                           stored.first_output + stored.outputs, all, base::quoted(prefix_ + stored.weight)),
               "outputs that are not there");
  }
  const bool turned = stored.orientation == Orientation::in_out;
  tensor::Tensor weight_values, bias_values, weight_storage, bias_storage;
  if (!turned && checkpoint_->entry(prefix_ + stored.weight).block_type) {
    check(stored.weight, {all, stored.inputs});
    std::optional<TensorView> bias;
    if (!stored.bias.empty()) bias = find(stored.bias, {all}, bias_values);
    const auto row = [&](size_t i) { return stored.row ? stored.row(i) : stored.first_output + i; };
    auto packed =
        linear::PackedLinear::from_blocks(checkpoint_->blocks(prefix_ + stored.weight), bias, stored.outputs, row);
    release(stored.weight);
    return packed;
  }
  const auto cut = [&](const TensorView& values, size_t axis, tensor::Tensor& storage) {
    return stored.row ? gather_rows(values, stored, storage)
                      : cut_outputs(values, axis, stored.first_output, stored.outputs, storage);
  };
  const tensor::Shape shape = turned ? tensor::Shape{stored.inputs, all} : tensor::Shape{all, stored.inputs};
  const TensorView matrix = find(stored.weight, stored.shape.value_or(shape), weight_values);
  TensorView weight = cut({matrix.dtype(), shape, matrix.bytes()}, turned ? 1 : 0, weight_storage);
  std::optional<TensorView> bias;
  if (!stored.bias.empty()) bias = cut(find(stored.bias, {all}, bias_values), 0, bias_storage);
  if (!stored.output_gain.empty()) {
    const std::vector<float> gains = numbers(stored.output_gain, stored.outputs);
    weight = scaled_outputs(weight, gains, weight_storage);
    if (bias) bias = scaled_outputs(*bias, gains, bias_storage);
  }
  linear::PackedLinear packed(weight, bias, turned);
  release(stored.weight);
  return packed;
}

NormParameters ParameterSource::norm(const std::string& gain, const std::string& bias, size_t d_model) {
  return {take(gain, {d_model}), take(bias, {d_model})};
}

NormParameters ParameterSource::rms_norm(const std::string& gain, size_t d_model, float offset) {
  tensor::Tensor gains = take(gain, {d_model});
  for (float& value : gains.as<float>()) value += offset;
  return {std::move(gains), {}};
}

std::vector<float> ParameterSource::numbers(const std::string& name, size_t count) {
  const tensor::Tensor values = take(name, {count});
  return {values.as<float>().begin(), values.as<float>().end()};
}

EmbeddingTable ParameterSource::table(const std::string& name, size_t rows, size_t d_model, bool leading) {
  check(name, leading ? tensor::Shape{1, rows, d_model} : tensor::Shape{rows, d_model});
  const std::string full = prefix_ + name;
  release(name);  // the check has read it; rows are read again when they are needed
  if (checkpoint_->entry(full).block_type) {
    return {rows, [checkpoint = checkpoint_, blocks = checkpoint_->blocks(full)](size_t id, std::span<float> row) {
              tensor::decode_blocks(blocks.type, blocks.row(id), row);
            }};
  }
  const TensorView table = checkpoint_->view(full);
  const size_t row_bytes = d_model * tensor::size_of(table.dtype());
  return {rows, [checkpoint = checkpoint_, table, row_bytes](size_t id, std::span<float> row) {
            const TensorView stored(table.dtype(), {row.size()}, table.bytes().subspan(id * row_bytes, row_bytes));
            tensor::copy_to_float(stored, row);
          }};
}

VocabularyMap ParameterSource::vocabulary(const std::string& name, size_t rows, size_t d_model) {
  check(name, {rows, d_model});
  return {rows, d_model, [checkpoint = checkpoint_, prefix = prefix_, name, rows, d_model] {
            return ParameterSource(checkpoint, prefix)
                .linear({.weight = name, .bias = "", .outputs = rows, .inputs = d_model});
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
