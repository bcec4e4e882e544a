// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/attention_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "clearhead/attention/exact.h"
#include "clearhead/attention/received.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/base/error.h"
#include "clearhead/measure/memory.h"

namespace clearhead::measure {
namespace {

constexpr size_t kCheckedRows = 64;

tensor::Tensor normal_values(const tensor::Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  tensor::Tensor values(shape);
  for (float& value : values.as<float>()) value = normal(generator);
  return values;
}

tensor::Tensor copy_of(std::string_view name, const tensor::TensorView& view, const tensor::Shape& shape) {
  if (view.dtype() != tensor::DType::f32 || view.shape() != shape) {
    base::refuse("attention inputs", fmt::format("{} of type F32 and shape {}", name, shape.text()),
                 fmt::format("{} {}", tensor::name_of(view.dtype()), view.shape().text()));
  }
  tensor::Tensor values(shape);
  tensor::copy_to_float(view, values.as<float>());
  return values;
}

tensor::Shape query_shape(const AttentionShape& shape) {
  return {shape.batch, shape.query_len, shape.num_heads, shape.head_dim};
}

tensor::Shape key_shape(const AttentionShape& shape) {
  return {shape.batch, shape.key_len, shape.num_kv_heads, shape.head_dim};
}

}  // namespace

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::none: return "none";
    case Evidence::rows: return "rows";
    case Evidence::all: return "all";
    case Evidence::received: return "received";
  }
  return "";
}

AttentionRun::AttentionRun(const AttentionShape& shape, attention::Precision precision)
    : shape_(shape),
      config_(shape.config()),
      query_(normal_values(query_shape(shape), 1)),
      key_(normal_values(key_shape(shape), 2)),
      value_(normal_values(key_shape(shape), 3)) {
  config_.precision = precision;
  make_room();
}

AttentionRun::AttentionRun(const AttentionShape& shape, const tensor::TensorView& query, const tensor::TensorView& key,
                           const tensor::TensorView& value, attention::Precision precision)
    : shape_(shape),
      config_(shape.config()),
      query_(copy_of("query", query, query_shape(shape))),
      key_(copy_of("key", key, key_shape(shape))),
      value_(copy_of("value", value, key_shape(shape))) {
  config_.precision = precision;
  make_room();
}

void AttentionRun::make_room() {
  output_ = tensor::Tensor(query_shape(shape_));
  reference_ = tensor::Tensor({shape_.batch, shape_.num_heads, shape_.query_len});
  sum_ = tensor::Tensor({shape_.batch, shape_.num_heads, shape_.query_len});
  received_ = tensor::Tensor({shape_.batch, shape_.num_heads, shape_.key_len});
  row_statistics_.groups = {{.distance = 0}, {.distance = -1}, {.distance = 1}};
  std::vector<size_t> ends{0, shape_.key_len - 1}, many;
  if (shape_.key_len == 1) ends.pop_back();
  for (size_t key = 0; key < shape_.key_len; key += 5) many.push_back(key);
  all_statistics_.groups = row_statistics_.groups;
  all_statistics_.groups.push_back({.keys = {std::move(ends)}});
  all_statistics_.groups.push_back({.keys = {std::move(many)}});
  all_statistics_.top = 8;
  all_statistics_.overview = attention::OverviewBins{64, 64};
}

attention::AttentionInput AttentionRun::input() const {
  return {shape_.batch, shape_.query_len, shape_.key_len, query_.as<float>(), key_.as<float>(), value_.as<float>(), {}};
}

attention::AttentionSpans AttentionRun::output() {
  return {output_.as<float>(), reference_.as<float>(), sum_.as<float>()};
}

void AttentionRun::receive() {
  attention::attention_received(config_, input(), reference_.as<float>(), sum_.as<float>(), received_.as<float>());
}

attention::RowStatistics* AttentionRun::statistics_of(Evidence evidence) {
  if (evidence == Evidence::rows) return &row_statistics_;
  return evidence == Evidence::all ? &all_statistics_ : nullptr;
}

void AttentionRun::run(Evidence evidence) {
  fused_.run(config_, input(), output(), statistics_of(evidence));
  if (evidence == Evidence::received) receive();
}

bool AttentionRun::is_right() {
  run(Evidence::none);
  // The last rows of the last sequence, as if the others had been computed before.
  const size_t rows = std::min(shape_.query_len, kCheckedRows);
  const size_t query_width = shape_.num_heads * shape_.head_dim;
  const size_t key_floats = shape_.key_len * shape_.num_kv_heads * shape_.head_dim;
  attention::AttentionConfig config = config_;
  config.key_offset = attention::bottom_right(rows, shape_.key_len);
  const auto end_of = [](const tensor::Tensor& values, size_t count) { return values.as<float>().last(count); };
  const attention::AttentionInput last{
      1, rows, shape_.key_len, end_of(query_, rows * query_width), end_of(key_, key_floats), end_of(value_, key_floats),
      {}};
  const auto want = attention::exact_attention(config, last);
  return std::ranges::equal(want.head_output.as<float>(), end_of(output_, rows * query_width));
}

std::optional<size_t> AttentionRun::working_bytes(Evidence evidence) {
  attention::RowStatistics* const statistics = statistics_of(evidence);
  if (statistics != nullptr) {
    const auto sequences = attention::sequences_of(config_, {shape_.batch, shape_.query_len, shape_.key_len}, {});
    statistics->prepare(reference_.elements(), shape_.num_heads, sequences);
  }
  // Their pages are there before: a system hands them out when they are written.
  for (tensor::Tensor* results : {&output_, &reference_, &sum_, &received_})
    std::ranges::fill(results->as<float>(), 1.0f);
  return growth_during([&] {
    attention::FusedAttention fresh;
    fresh.run(config_, input(), output(), statistics);
    if (evidence == Evidence::received) receive();
  });
}

}  // namespace clearhead::measure
