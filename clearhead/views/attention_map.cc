// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/attention_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::views {
namespace {

using capture::Stage;
using capture::TraceToken;

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

// What every row gives to special tokens, mean over the rows that are kept.
double mass_on_special(const AttentionMap& map, const std::vector<size_t>& kept) {
  const size_t n = map.tokens.size();
  std::vector<std::vector<float>> columns;  // of special tokens, [n] each
  for (size_t key = 0; key < n; ++key) {
    if (!map.tokens[key].special) continue;
    columns.emplace_back(n);
    map.weights->column(0, 0, key, columns.back());
  }
  double mass = 0;
  for (const size_t query : kept) {
    for (const auto& column : columns) mass += column[query];
  }
  return kept.empty() ? 0 : mass / static_cast<double>(kept.size());
}

// Removes the rows and columns of special tokens; says what mass went with the columns.
void hide_special(AttentionMap& map) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < map.tokens.size(); ++i)
    if (!map.tokens[i].special) kept.push_back(i);
  map.hidden_mass = mass_on_special(map, kept);
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
  map.weights = only_tokens(std::move(map.weights), std::move(kept));
}

// A trace owns its sources alone.
class Borrowed : public capture::WeightSource {
 public:
  explicit Borrowed(ShownWeights weights) : weights_(std::move(weights)) {}

  size_t batch() const override { return weights_->batch(); }
  size_t num_heads() const override { return weights_->num_heads(); }
  size_t query_len() const override { return weights_->query_len(); }
  size_t key_len() const override { return weights_->key_len(); }

 private:
  void read(const capture::WeightArea& area, std::span<float> weights) const override { weights_->tile(area, weights); }

  ShownWeights weights_;
};

}  // namespace

capture::Trace in_words(const capture::Trace& trace) {
  const Grouping grouping = grouping_of(trace.info().tokens);
  capture::TraceInfo info = trace.info();
  info.tokens = joined_tokens(trace.info().tokens, grouping, trace.info().text);
  capture::Trace words(info);
  bool any = false;
  for (const size_t layer : info.layers) {
    if (!trace.shows(Stage::weights, layer)) continue;
    words.attach(Stage::weights, layer, std::make_unique<Borrowed>(joined(layer_weights(trace, layer), grouping)));
    any = any || !info.heads.empty();
  }
  if (!any) base::fail("weights", "a trace with weights", "none", "record the stage weights");
  return words;
}

AttentionMap attention_map(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options) {
  AttentionMap map;
  map.weights = head_weights(trace, layer, head);
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
    map.places.clear();
    for (size_t i = 0; i < grouping.word_of.size(); ++i)
      if (grouping.word_of[i] == map.places.size()) map.places.push_back(i);
    if (map.from) map.from = grouping.word_of[*map.from];
    map.weights = joined(std::move(map.weights), grouping);
  }
  if (options.hide_special) hide_special(map);
  return map;
}

}  // namespace clearhead::views
