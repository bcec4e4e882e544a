// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/decoder_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "clearhead/base/error.h"
#include "clearhead/engine/looker.h"
#include "clearhead/model/transformer.h"

namespace clearhead::measure {
namespace {

constexpr size_t kLargestContext = 1 << 20;
constexpr size_t kLooks = 3;
constexpr DecoderShape kShapes[] = {{false, 512}, {false, 2048}, {true, 128}, {true, 2048}};

// Tokens that are read in all.
size_t length_of(const DecoderShape& shape) { return shape.context + (shape.decodes ? kDecodedTokens : 0); }

}  // namespace

DecoderShape DecoderShape::parse(std::string_view text) {
  const size_t space = text.find(' ');
  const std::string_view what = text.substr(0, space);
  if (space != std::string_view::npos && (what == "prompt" || what == "decode")) {
    DecoderShape shape{what == "decode", 0};
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + space + 1, end, shape.context);
    if (read.ec == std::errc() && read.ptr == end && shape.context > 0 && shape.context <= kLargestContext)
      return shape;
  }
  base::refuse("decoder shape", "prompt or decode and a number of tokens, such as \"prompt 512\"", base::quoted(text));
}

std::string DecoderShape::text() const { return fmt::format("{} {}", decodes ? "decode" : "prompt", context); }

std::span<const DecoderShape> decoder_shapes() { return kShapes; }

DecoderRun::DecoderRun(const engine::Session& session, const DecoderShape& shape, linear::Compute compute)
    : shape_(shape), reader_(session.transformer(), length_of(shape), compute) {
  std::mt19937_64 generator(7);
  ids_.resize(length_of(shape));
  for (int64_t& id : ids_) id = static_cast<int64_t>(generator() % session.config().vocab_size);
  prepare();
}

DecoderRun::DecoderRun(const engine::Session& session, const DecoderShape& shape, const tensor::TensorView& ids,
                       linear::Compute compute)
    : shape_(shape), reader_(session.transformer(), length_of(shape), compute) {
  const tensor::Shape wanted{length_of(shape)};
  if (ids.dtype() != tensor::DType::i64 || ids.shape() != wanted) {
    base::refuse("decoder inputs", fmt::format("ids of type I64 and shape {}", wanted.text()),
                 fmt::format("{} {}", tensor::name_of(ids.dtype()), ids.shape().text()));
  }
  const tensor::Tensor aligned = tensor::clone(ids);
  ids_.assign(aligned.as<int64_t>().begin(), aligned.as<int64_t>().end());
  prepare();
}

void DecoderRun::prepare() {
  if (shape_.decodes) read(std::span(ids_).first(shape_.context), false);
}

void DecoderRun::run(bool looks) {
  reader_.cache().truncate(shape_.decodes ? shape_.context : 0);
  if (!shape_.decodes) return read(ids_, looks);
  for (size_t i = 0; i < kDecodedTokens; ++i) read(std::span(ids_).subspan(shape_.context + i, 1), looks);
}

void DecoderRun::read(std::span<const int64_t> ids, bool looks) {
  engine::Looker looker(looks ? kLooks : 0, {1});
  logits_ = reader_.read(ids, &looker);
  looker.take();
}

}  // namespace clearhead::measure
