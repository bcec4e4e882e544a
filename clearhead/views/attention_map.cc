// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/attention_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "clearhead/base/error.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::views {
namespace {

using capture::Stage;
using capture::TraceToken;

// Which word each token belongs to; words are runs of tokens.
struct Grouping {
  std::vector<size_t> word_of;  // [seq]
  std::vector<size_t> pieces;   // [words]: number of tokens
  size_t words() const { return pieces.size(); }
};

Grouping grouping_of(const std::vector<TraceToken>& tokens) {
  Grouping grouping;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool joins = i > 0 && tokens[i].continues_word && !tokens[i].special && !tokens[i - 1].special;
    if (!joins) grouping.pieces.push_back(0);
    ++grouping.pieces.back();
    grouping.word_of.push_back(grouping.words() - 1);
  }
  return grouping;
}

// The text from the first piece to the last; pieces without a place in it are strung together.
std::string text_of_word(std::span<const TraceToken> pieces, const std::string& text) {
  if (pieces.size() == 1) return pieces.front().text;
  const size_t begin = pieces.front().begin, end = pieces.back().end;
  if (begin < end && end <= text.size()) return text.substr(begin, end - begin);
  std::string strung;
  for (const TraceToken& piece : pieces) strung += piece.text;
  return strung;
}

std::vector<TraceToken> joined_tokens(const std::vector<TraceToken>& tokens, const Grouping& grouping,
                                      const std::string& text) {
  std::vector<TraceToken> words;
  size_t at = 0;
  for (const size_t count : grouping.pieces) {
    const std::span<const TraceToken> pieces(tokens.data() + at, count);
    TraceToken word = pieces.front();
    word.text = text_of_word(pieces, text);
    word.end = pieces.back().end;
    word.continues_word = false;
    if (count > 1) {
      word.id = -1;
      for (const TraceToken& piece : pieces.subspan(1)) word.piece += " " + piece.piece;
    }
    words.push_back(std::move(word));
    at += count;
  }
  return words;
}

// Sum over the pieces looked at, mean over the pieces that look. Shapes: weights [seq, seq], output [words, words].
void join_weights(std::span<const float> weights, const Grouping& grouping, std::span<float> output) {
  const size_t seq_len = grouping.word_of.size(), words = grouping.words();
  std::vector<double> row(words, 0.0);
  for (size_t query = 0; query < seq_len; ++query) {
    const size_t word = grouping.word_of[query];
    for (size_t key = 0; key < seq_len; ++key) row[grouping.word_of[key]] += weights[query * seq_len + key];
    if (query + 1 < seq_len && grouping.word_of[query + 1] == word) continue;
    const auto pieces = static_cast<double>(grouping.pieces[word]);
    for (size_t key = 0; key < words; ++key) output[word * words + key] = static_cast<float>(row[key] / pieces);
    std::fill(row.begin(), row.end(), 0.0);
  }
}

// Removes the rows and columns of special tokens; says what mass went with the columns.
void hide_special(AttentionMap& map) {
  const size_t n = map.tokens.size();
  std::vector<size_t> kept;
  for (size_t i = 0; i < n; ++i)
    if (!map.tokens[i].special) kept.push_back(i);
  std::vector<float> weights;
  double hidden = 0;
  for (const size_t query : kept) {
    for (size_t key = 0; key < n; ++key) hidden += map.tokens[key].special ? map.weights[query * n + key] : 0;
    for (const size_t key : kept) weights.push_back(map.weights[query * n + key]);
  }
  if (map.from) {
    const auto place = std::find(kept.begin(), kept.end(), *map.from);
    if (place == kept.end()) {
      base::refuse("from", "a token that is shown", base::quoted(map.tokens[*map.from].text),
                   "show special tokens to see where they look");
    }
    map.from = static_cast<size_t>(place - kept.begin());
  }
  std::vector<TraceToken> tokens;
  std::vector<size_t> places;
  for (const size_t i : kept) {
    tokens.push_back(map.tokens[i]);
    places.push_back(map.places[i]);
  }
  map.tokens = std::move(tokens);
  map.places = std::move(places);
  map.weights = std::move(weights);
  map.hidden_mass = kept.empty() ? 0 : hidden / static_cast<double>(kept.size());
}

}  // namespace

capture::Trace in_words(const capture::Trace& trace) {
  const Grouping grouping = grouping_of(trace.info().tokens);
  capture::TraceInfo info = trace.info();
  info.tokens = joined_tokens(trace.info().tokens, grouping, trace.info().text);
  capture::Trace words(info);
  const size_t n = grouping.words();
  bool any = false;
  for (const size_t layer : info.layers) {
    if (!trace.has(Stage::weights, layer)) continue;
    tensor::Tensor joined(tensor::Shape{1, info.heads.size(), n, n});
    for (size_t i = 0; i < info.heads.size(); ++i)
      join_weights(head_weights(trace, layer, info.heads[i]), grouping, joined.as<float>().subspan(i * n * n, n * n));
    words.add(Stage::weights, layer, std::move(joined));
    any = any || !info.heads.empty();
  }
  if (!any) base::fail("weights", "a trace with weights", "none", "record the stage weights");
  return words;
}

AttentionMap attention_map(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options) {
  const auto weights = head_weights(trace, layer, head);
  AttentionMap map;
  map.model = trace.info().model;
  map.layer = layer;
  map.head = head;
  map.kind = summarize_head(trace, layer, head, 1).kind;
  map.tokens = trace.info().tokens;
  map.places.resize(map.tokens.size());
  std::iota(map.places.begin(), map.places.end(), size_t{0});
  map.from = options.from;
  if (map.from && *map.from >= map.tokens.size())
    base::refuse("from", fmt::format("a token below {}", map.tokens.size()), fmt::format("{}", *map.from));
  if (options.words) {
    const Grouping grouping = grouping_of(map.tokens);
    map.tokens = joined_tokens(map.tokens, grouping, trace.info().text);
    map.weights.resize(grouping.words() * grouping.words());
    join_weights(weights, grouping, map.weights);
    map.places.clear();
    for (size_t i = 0; i < grouping.word_of.size(); ++i)
      if (grouping.word_of[i] == map.places.size()) map.places.push_back(i);
    if (map.from) map.from = grouping.word_of[*map.from];
  } else {
    map.weights.assign(weights.begin(), weights.end());
  }
  if (options.hide_special) hide_special(map);
  return map;
}

}  // namespace clearhead::views
