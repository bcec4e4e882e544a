// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/encoder_run.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "clearhead/base/error.h"
#include "clearhead/model/transformer.h"

namespace clearhead::measure {
namespace {

constexpr size_t kLargestSize = 1 << 20;
constexpr EncoderShape kShapes[] = {{1, 16}, {1, 128}, {1, 512}, {8, 128}, {32, 128}};

EncoderShape shape_of(const tensor::TensorView& ids) {
  if (ids.dtype() != tensor::DType::i64 || ids.shape().rank() != 2 || ids.elements() == 0) {
    base::refuse("encoder inputs", "ids of type I64 and shape [batch, seq]",
                 fmt::format("{} {}", tensor::name_of(ids.dtype()), ids.shape().text()));
  }
  return {ids.shape()[0], ids.shape()[1]};
}

}  // namespace

EncoderShape EncoderShape::parse(std::string_view text) {
  EncoderShape shape;
  const char* const end = text.data() + text.size();
  const auto batch = std::from_chars(text.data(), end, shape.batch);
  if (batch.ec == std::errc() && batch.ptr != end && *batch.ptr == 'x') {
    const auto seq = std::from_chars(batch.ptr + 1, end, shape.seq_len);
    const bool fits = std::min(shape.batch, shape.seq_len) > 0 && std::max(shape.batch, shape.seq_len) <= kLargestSize;
    if (seq.ec == std::errc() && seq.ptr == end && fits) return shape;
  }
  base::refuse("encoder shape", "BATCHxLENGTH, such as 8x128", base::quoted(text));
}

std::string EncoderShape::text() const { return fmt::format("{}x{}", batch, seq_len); }

std::span<const EncoderShape> encoder_shapes() { return kShapes; }

double encoder_operations(const model::ModelConfig& config, const EncoderShape& shape) {
  const attention::AttentionConfig& heads = config.attention;
  const double d_model = double(config.d_model);
  const double query = double(heads.num_heads * heads.head_dim), key = double(heads.num_kv_heads * heads.head_dim);
  const double value = double(heads.num_kv_heads * heads.value_dim), output = double(heads.num_heads * heads.value_dim);
  const double wide = (config.gated ? 6 : 4) * d_model * double(config.d_ff);
  const double maps = 2 * d_model * (query + key + value + output) + wide;
  const double seen = double(shape.seq_len) * (heads.causal == attention::Causal::none ? 1 : 0.5);
  return double(config.num_layers * shape.tokens()) * (maps + 2 * seen * (query + output));
}

EncoderRun::EncoderRun(const engine::Session& session, const EncoderShape& shape) : session_(session), shape_(shape) {
  std::mt19937_64 generator(7);
  const size_t vocab_size = session.config().vocab_size;
  ids_.resize(shape.tokens());
  for (int64_t& id : ids_) id = static_cast<int64_t>(generator() % vocab_size);
}

EncoderRun::EncoderRun(const engine::Session& session, const tensor::TensorView& ids)
    : session_(session), shape_(shape_of(ids)) {
  const tensor::Tensor aligned = tensor::clone(ids);
  const auto values = aligned.as<int64_t>();
  ids_.assign(values.begin(), values.end());
}

tensor::TensorView EncoderRun::hidden() const {
  const tensor::Shape shape{shape_.batch, shape_.seq_len, session_.config().d_model};
  return {tensor::DType::f32, shape, std::as_bytes(hidden_)};
}

void EncoderRun::run() {
  lengths_.assign(shape_.batch, shape_.seq_len);
  hidden_ = session_.transformer().run({ids_, {}, lengths_}, workspace_);
}

}  // namespace clearhead::measure
