// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/capture/recorder.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/model/families/family.h"
#include "clearhead/text/tokenizer.h"
#include "clearhead/text/toy_tokenizer.h"

namespace clearhead::engine {
namespace {

// Ids of the toy's tokenizer are below.
constexpr size_t kToyVocabSize = size_t{1} << 31;

// The same text with U+FFFD in place of every invalid sequence.
std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    if (const auto invalid = base::first_invalid_utf8(text)) {
      valid += text.substr(0, *invalid);
      text.remove_prefix(*invalid);
      base::append_utf8(valid, 0xfffd);
      text.remove_prefix(base::decode_utf8(text).length);
    } else {
      return valid += text;
    }
  }
  return valid;
}

// Leaves limit tokens; special ones that end the text stay its end.
void cut_tokens(std::vector<text::Token>& tokens, size_t limit) {
  size_t ending = 0;
  while (ending < limit && ending < tokens.size() && tokens[tokens.size() - 1 - ending].special) ++ending;
  const auto end = tokens.end() - static_cast<std::ptrdiff_t>(ending);
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(limit - ending), end);
}

// Hands everything on to a recorder, if there is one, and says after each layer how far the run is.
class Reporter : public capture::Observer {
 public:
  Reporter(capture::Recorder* recorder, const RunOptions& options, size_t num_layers)
      : recorder_(recorder), options_(options), num_layers_(num_layers) {}

  bool wants(capture::Stage stage, size_t layer) const override {
    return (recorder_ != nullptr && recorder_->wants(stage, layer)) || reports(stage);
  }
  void observe(capture::Stage stage, size_t layer, const tensor::TensorView& values) override {
    if (recorder_ != nullptr) recorder_->observe(stage, layer, values);
    if (reports(stage)) options_.progress(layer + 1, num_layers_);
  }

 private:
  bool reports(capture::Stage stage) const { return options_.progress && stage == capture::Stage::layer_output; }

  capture::Recorder* recorder_;
  const RunOptions& options_;
  size_t num_layers_;
};

std::vector<int64_t> ids_of(const TokenizedText& tokenized) {
  std::vector<int64_t> ids;
  for (const capture::TraceToken& token : tokenized.tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace

struct Session::Parts {
  std::string name;
  model::LoadedModel model;
  std::optional<text::Tokenizer> tokenizer;  // absent: the toy's

  text::Encoding encode(std::string_view text) const {
    return tokenizer ? tokenizer->encode(text) : text::toy_encode(text);
  }

  void check_memory(size_t seq_len, const capture::Selection& selection, const RunOptions& options) const {
    const size_t estimate = estimate_run_bytes(model.transformer, seq_len, selection);
    const std::optional<size_t> available = free_memory();
    const size_t limit = options.memory_limit.value_or(available ? *available / 2 : std::numeric_limits<size_t>::max());
    if (estimate <= limit) return;
    base::refuse("memory", fmt::format("a run that keeps at most {} bytes", limit),
                 estimate == kUncountable ? std::string("more than can be counted") : fmt::format("{} bytes", estimate),
                 options.memory_limit
                     ? "record fewer stages, layers or heads, or raise the limit"
                     : "record fewer stages, layers or heads, or set a limit above half of what is free");
  }
};

Session::Session(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Session Session::open(std::string_view model) {
  if (const auto config = ToyConfig::parse(model)) return toy(*config);
  const format::ResolvedModel resolved = format::resolve_model(model);
  const auto checkpoint = std::make_shared<const format::Checkpoint>(format::Checkpoint::open(resolved.path));
  auto tokenizer = text::Tokenizer::from_file(checkpoint->tokenizer_path());
  model::LoadedModel loaded = model::load_model(checkpoint);
  for (std::string& warning : tokenizer.warnings()) loaded.warnings.push_back(std::move(warning));
  return Session(std::make_unique<Parts>(Parts{valid_utf8(model), std::move(loaded), std::move(tokenizer)}));
}

Session Session::toy(const ToyConfig& config) {
  return Session(std::make_unique<Parts>(Parts{config.text(), {make_toy(config, kToyVocabSize), {}}, std::nullopt}));
}

const std::string& Session::name() const { return parts_->name; }
const model::Transformer& Session::transformer() const { return parts_->model.transformer; }
const std::vector<std::string>& Session::warnings() const { return parts_->model.warnings; }

TokenizedText Session::tokenize(std::string_view text, bool truncate) const {
  TokenizedText result;
  result.text = valid_utf8(text);
  text::Encoding encoding = parts_->encode(result.text);
  const bool says_something =
      std::ranges::any_of(encoding.tokens, [](const text::Token& token) { return !token.special; });
  if (!says_something) base::refuse("text", "a text with at least one token", text.empty() ? "an empty text" : "none");

  const size_t seq_len = encoding.tokens.size(), context_len = config().context_len;
  if (context_len != 0 && seq_len > context_len) {
    if (!truncate) {
      base::refuse("text", fmt::format("at most {} tokens, the positions of {}", context_len, base::quoted(name())),
                   fmt::format("{} tokens", seq_len), "shorten the text, or let it be truncated");
    }
    cut_tokens(encoding.tokens, context_len);
    result.cut = seq_len - context_len;
  }
  result.unknown_count = encoding.unknown_count;
  for (text::Token& token : encoding.tokens) {
    result.type_ids.push_back(static_cast<int64_t>(token.type_id));
    result.tokens.push_back({.text = std::move(token.text),
                             .piece = std::move(token.piece),
                             .id = token.id,
                             .begin = token.begin,
                             .end = token.end,
                             .special = token.special,
                             .continues_word = token.continues_word,
                             .type_id = result.type_ids.back()});
  }
  return result;
}

size_t Session::memory_estimate(size_t seq_len, const capture::Selection& selection) const {
  return estimate_run_bytes(transformer(), seq_len, selection);
}

capture::Trace Session::run(std::string_view text, const capture::Selection& selection,
                            const RunOptions& options) const {
  return run(tokenize(text, options.truncate), selection, options);
}

capture::Trace Session::run(TokenizedText tokenized, const capture::Selection& selection,
                            const RunOptions& options) const {
  parts_->check_memory(tokenized.tokens.size(), selection, options);
  const std::vector<int64_t> ids = ids_of(tokenized);

  capture::TraceInfo trace_info;
  trace_info.model = name();
  trace_info.text = std::move(tokenized.text);
  trace_info.tokens = std::move(tokenized.tokens);
  trace_info.attention = config().attention.json();
  trace_info.num_layers = config().num_layers;
  trace_info.num_heads = config().attention.num_heads;
  capture::Recorder recorder(selection, std::move(trace_info), config().attention.num_kv_heads);
  Reporter reporter(&recorder, options, config().num_layers);
  transformer().run({ids, tokenized.type_ids}, &reporter);
  return std::move(recorder).take();
}

tensor::Tensor Session::encode(std::string_view text, const RunOptions& options) const {
  const TokenizedText tokenized = tokenize(text, options.truncate);
  parts_->check_memory(tokenized.tokens.size(), {}, options);
  const std::vector<int64_t> ids = ids_of(tokenized);
  Reporter reporter(nullptr, options, config().num_layers);
  return transformer().run({ids, tokenized.type_ids}, &reporter);
}

}  // namespace clearhead::engine
