// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/reader.h"
#include "clearhead/engine/token_texts.h"
#include "clearhead/kernels/bfloat16_tile.h"
#include "clearhead/model/key_value_cache.h"
#include "clearhead/text/tokenizer.h"

namespace clearhead::engine {
namespace {

constexpr size_t kErrorTokens = 32;    // of a prompt for which the error of products in bfloat16 is measured
constexpr size_t kContextTokens = 16;  // of the prompt that are decoded with the new ones, for the spaces between

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The text of new tokens, each decoded once, without that of the prompt before them.
class NewText {
 public:
  NewText(const Session& session, std::span<const int64_t> prompt_ids) : stream_(session.decode_stream()) {
    const auto context = prompt_ids.last(std::min(prompt_ids.size(), kContextTokens));
    std::string before;
    for (const int64_t id : context) before += stream_.add(id);
    const std::string whole = session.decode(context);
    if (whole.starts_with(before)) kept_back_ = whole.substr(before.size());
  }

  // What is certain with one more token; the rest.
  std::string add(int64_t id) { return own(stream_.add(id)); }
  std::string finish() { return own(stream_.finish()); }

 private:
  std::string own(std::string more) {
    if (more.empty()) return more;
    if (more.starts_with(kept_back_)) more.erase(0, kept_back_.size());
    kept_back_.clear();
    return more;
  }

  text::DecodeStream stream_;
  std::string kept_back_;  // of the prompt's text, which comes before that of the new tokens
};

// The new tokens and their text as they grow. Those that only a stop text is made of are taken back.
class Writer {
 public:
  // result has the ids of the prompt.
  Writer(const Session& session, const GenerateOptions& options, Generated& result)
      : session_(session),
        new_text_(session, result.prompt_ids),
        token_texts_(session),
        options_(options),
        result_(result) {}

  // Takes one more token and hands on what is certain by now. Returns whether a stop text was written.
  bool add(int64_t id, std::vector<Look> looks) {
    result_.ids.push_back(id);
    result_.looks.push_back(std::move(looks));
    write(new_text_.add(id));
    ends_.push_back(text_.size());
    if (!stopped_) hand_on_tokens(certain_tokens());
    return stopped_;
  }

  // Hands on the rest.
  void finish() {
    if (!stopped_) write(new_text_.finish());
    hand_on(text_.size());
    if (stopped_) {
      result_.stopped_by = "stop";
      while (result_.ids.size() > told_tokens_ && holds_text(result_.ids.size() - 1)) result_.ids.pop_back();
      result_.looks.resize(result_.ids.size());
    }
    hand_on_tokens(result_.ids.size());
    show(token_texts_.finish());
    result_.text = std::move(text_);
  }

 private:
  void write(std::string_view more) {
    text_ += more;
    for (const std::string& stop : options_.stop) {
      const size_t place = stop.empty() ? std::string::npos : text_.find(stop, told_);
      if (place == std::string::npos) continue;
      text_.resize(place);
      stopped_ = true;
    }
    if (!stopped_) hand_on(certain());
  }

  // Bytes of the text that are no beginning of a stop text.
  size_t certain() const {
    const std::string_view all = text_;
    size_t size = all.size();
    for (const std::string& stop : options_.stop) {
      for (size_t begun = std::min(stop.size(), all.size()); begun > 0; --begun) {
        if (!all.ends_with(std::string_view(stop).substr(0, begun))) continue;
        size = std::min(size, all.size() - begun);
        break;
      }
    }
    return size;
  }

  void hand_on(size_t end) {
    if (end <= told_) return;
    if (options_.on_text) options_.on_text(std::string_view(text_).substr(told_, end - told_));
    told_ = end;
  }

  // Tokens that stay whatever comes: those whose text was handed on; all where nothing can stop it.
  size_t certain_tokens() const {
    if (options_.stop.empty()) return ends_.size();
    auto count = static_cast<size_t>(std::ranges::upper_bound(ends_, told_) - ends_.begin());
    while (count > 1 && ends_[count - 1] == ends_[count - 2]) --count;  // a part of a character that is to come
    return count == 1 && ends_[0] == 0 ? 0 : count;
  }

  // Do the first new tokens alone say all of the text?
  bool holds_text(size_t count) const {
    NewText first(session_, result_.prompt_ids);
    std::string text;
    for (size_t i = 0; i < count; ++i) text += first.add(result_.ids[i]);
    return (text + first.finish()).starts_with(text_);
  }

  void hand_on_tokens(size_t count) {
    if (options_.on_token) {
      for (size_t i = told_tokens_; i < count; ++i) show(token_texts_.add(result_.ids[i]));
    }
    told_tokens_ = std::max(told_tokens_, count);
  }

  void show(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) options_.on_token(text, result_.looks[shown_tokens_++]);
  }

  const Session& session_;
  NewText new_text_;
  TokenTexts token_texts_;
  const GenerateOptions& options_;
  Generated& result_;
  std::string text_;
  std::vector<size_t> ends_;  // [ids] bytes of text_ with each
  size_t told_ = 0;           // bytes of text_ that were handed on
  size_t told_tokens_ = 0, shown_tokens_ = 0;
  bool stopped_ = false;
};

// [ids] what is shown of each.
std::vector<std::string> texts_of(const Session& session, std::span<const int64_t> ids) {
  TokenTexts shown(session);
  std::vector<std::string> texts;
  const auto take = [&](const std::vector<std::string>& known) {
    texts.insert(texts.end(), known.begin(), known.end());
  };
  for (const int64_t id : ids) take(shown.add(id));
  take(shown.finish());
  return texts;
}

void check_model(const Session& session) {
  const model::ModelConfig& config = session.config();
  if (!session.transformer().has(capture::Stage::logits) || config.attention.causal == attention::Causal::none) {
    base::refuse("generate", "a model that writes text (a decoder with a head over the vocabulary)",
                 fmt::format("{}, of the family {}", base::quoted(session.name()), config.family),
                 "smollm2-135m-instruct is one");
  }
}

void check_compute(linear::Compute compute) {
  if (compute == linear::Compute::single || kernels::has_pair_instruction()) return;
  base::refuse("generate", "a processor with AVX512_BF16 for products in bf16", "one without", "compute in float");
}

void check_memory(const Session& session, size_t tokens, const GenerateOptions& options) {
  const size_t needed = writing_bytes(session, tokens, options.cache);
  const auto free = free_memory();
  const size_t limit = options.memory_limit.value_or(free ? *free / 2 : kUncountable);
  if (needed <= limit) return;
  base::refuse("memory", fmt::format("a run that keeps at most {} bytes", limit), fmt::format("{} bytes", needed),
               "write fewer tokens, or raise the limit");
}

Choices choices_of(const Session& session, const std::set<int64_t>& end_ids) {
  Choices choices = {.num_pieces = session.num_pieces(), .end_ids = end_ids};
  for (size_t id = 0; id < choices.num_pieces; ++id) {
    const auto token = static_cast<int64_t>(id);
    if (session.piece_of(token).empty()) choices.holes.insert(token);  // the file left the id out
  }
  return choices;
}

// All are looked at, side by side: a loop that may end early would take one after the other.
bool all_finite(std::span<const float> logits) {
  bool finite = true;
  for (const float logit : logits) finite &= std::isfinite(logit);
  return finite;
}

}  // namespace

size_t writing_bytes(const Session& session, size_t tokens, attention::Precision cache) {
  if (session.transformer().has(capture::Stage::logits)) session.transformer().parameters().vocabulary.get();
  const size_t chunk = session.memory_estimate(std::min(tokens, Reader::chunk()), {});
  const size_t kept = model::KeyValueCache::bytes(session.config(), tokens, cache);
  return kept > kUncountable - chunk ? kUncountable : chunk + kept;
}

Generated generate(const Session& session, std::string_view prompt, const GenerateOptions& options) {
  check_model(session);
  return generate(session, session.tokenize(prompt, true), options);
}

Generated generate(const Session& session, const TokenizedText& tokens, const GenerateOptions& options) {
  check_model(session);
  check_compute(options.compute);
  Generated result;
  std::vector<uint8_t> resting;
  for (const capture::TraceToken& token : tokens.tokens) {
    result.prompt_ids.push_back(token.id);
    resting.push_back(token.special || session.is_control(token.id) ? 1 : 0);
  }
  const size_t context_len = session.config().context_len, prompt_len = result.prompt_ids.size() + tokens.cut;
  if (context_len != 0 && prompt_len >= context_len) {
    base::refuse(
        "generate",
        fmt::format("a prompt of fewer than {} tokens, the positions of {}", context_len, base::quoted(session.name())),
        fmt::format("{}", prompt_len), "shorten the prompt");
  }
  const size_t room = context_len == 0 ? options.max_tokens : context_len - prompt_len;
  const size_t most = std::min(options.max_tokens, room);
  check_memory(session, prompt_len + most, options);
  result.declared_len = prompt_len + most;

  Reader reader(session.transformer(), result.declared_len, options.compute, options.cache);
  const std::set<int64_t> end_ids(session.end_ids().begin(), session.end_ids().end());
  Sampler sampler(options.sampling, choices_of(session, end_ids));
  Writer writer(session, options, result);
  Looker looker(options.looks, std::move(resting));
  std::vector<int64_t> seen = result.prompt_ids;
  auto start = std::chrono::steady_clock::now();
  tensor::Tensor logits = reader.read(result.prompt_ids, &looker);
  result.prompt_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  result.stopped_by = most < options.max_tokens ? "context" : "length";
  while (result.ids.size() < most) {
    if (!result.non_finite && !all_finite(logits.as<float>())) result.non_finite = result.ids.size();
    const auto id = static_cast<int64_t>(sampler.pick(logits.as<float>(), seen));
    if (end_ids.contains(id)) {
      result.stopped_by = "end";
      break;
    }
    seen.push_back(id);
    if (writer.add(id, looker.take())) break;
    if (result.ids.size() < most) logits = reader.read(std::span(&seen.back(), 1), &looker);
  }
  result.seconds = seconds_since(start);
  writer.finish();
  if (options.compute != linear::Compute::single) {
    const size_t count = std::min(kErrorTokens, result.prompt_ids.size());
    result.compute_error = compute_error(session.transformer(), std::span(result.prompt_ids).first(count));
  }
  result.cache_bytes = reader.cache().bytes();
  result.cache_error = reader.cache().error();
  return result;
}

double compute_error(const model::Transformer& transformer, std::span<const int64_t> ids) {
  const auto logits = [&](linear::Compute compute) {
    const tensor::Tensor hidden = transformer.run({.ids = ids, .type_ids = {}, .compute = compute});
    return transformer.logits(hidden.as<float>().last(transformer.config().d_model));
  };
  const tensor::Tensor exact = logits(linear::Compute::single), rounded = logits(linear::Compute::bfloat16);
  const auto a = exact.as<float>(), b = rounded.as<float>();
  double sum = 0, squares = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += double(a[i]);
    squares += double(a[i]) * double(a[i]);
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
  }
  const double variance = squares - sum * sum / double(a.size());
  return variance > 0 ? std::sqrt(difference / variance) : 0;
}

TokenizedText whole_text(const Session& session, const TokenizedText& prompt, const Generated& written) {
  TokenizedText all = prompt;
  all.declared_len = written.declared_len;
  all.written = written.ids.size();
  NewText new_text(session, written.prompt_ids);
  const std::vector<std::string> texts = texts_of(session, written.ids);
  for (size_t i = 0; i < written.ids.size(); ++i) {
    const int64_t id = written.ids[i];
    const size_t begin = all.text.size();
    all.text += new_text.add(id);  // of a character that is not whole, nothing: the token that ends it has its place
    const std::string& shown = texts[i];
    const size_t first = std::min(shown.find_first_not_of(' '), shown.size());  // as tokens of a text are shown
    all.tokens.push_back({.text = first == shown.size() ? shown : shown.substr(first),
                          .piece = std::string(session.piece_of(id)),
                          .id = id,
                          .begin = begin,
                          .end = all.text.size(),
                          .special = false,
                          .continues_word = false,
                          .type_id = 0});
    all.type_ids.push_back(0);
  }
  if (written.ids.empty()) return all;
  all.text += new_text.finish();
  all.tokens.back().end = all.text.size();
  return all;
}

}  // namespace clearhead::engine
