// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/row_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/text/word.h"

namespace clearhead::views {
namespace {

constexpr size_t kMostStripLines = 8;
constexpr size_t kMostKeys = 24;
constexpr size_t kMostHeads = 20;
constexpr size_t kBarColumns = 24;
constexpr size_t kBarColumnsOfHead = 14;
constexpr size_t kMostFound = 16, kFindersOfEach = 3;

// The sentence, each token on the colour of its weight, the one that looks in its own ink; wrapped.
void draw_strip(std::string& output, std::span<const float> row, size_t query,
                const std::vector<capture::TraceToken>& tokens, const Labels& labels) {
  const Pen& pen = labels.pen();
  if (!pen.colored()) return;
  const size_t room = labels.width() - 4;
  Text line;
  size_t lines = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string name = " " + labels.token(tokens[i], 16) + " ";
    Text chip = pen.cell(name, row[i]);
    if (i == query) chip = pen.write(pen.style().ascii ? ">" : "\xE2\x96\xB8", Ink::query) + chip;
    if (line.width() + chip.width() > room) {
      labels.line(output, line);
      line = Text();
      if (++lines == kMostStripLines) {
        labels.line(output, pen.write(pen.ellipsis(), Ink::dim));
        return;
      }
    }
    line += chip;
  }
  labels.line(output, line);
}

// A token's weights of at most a line of the picture.
void draw_keys(std::string& output, std::span<const float> row, const AttentionMap& map, const Labels& labels) {
  const Pen& pen = labels.pen();
  labels.heading(output, labels.word("keys_title"));
  const std::vector<size_t> keys = largest_of_row(row, kMostKeys);
  if (keys.empty()) labels.line(output, pen.write(labels.word("nothing"), Ink::dim));
  size_t widest = 0;
  for (const size_t key : keys) widest = std::max(widest, display_width(labels.token(map.tokens[key])));
  double rest = std::accumulate(row.begin(), row.end(), 0.0);
  for (const size_t key : keys) {
    labels.line(output, pen.write(fmt::format("{:>4} ", map.places[key]), Ink::dim) +
                            labels.token(map.tokens[key], Ink::key).padded(widest) + Text("  ") +
                            Text(labels.percent(row[key])).right_aligned(6) + Text("  ") +
                            pen.bar(row[key], kBarColumns));
    rest -= row[key];
  }
  const auto seen = static_cast<size_t>(std::count_if(row.begin(), row.end(), [](float w) { return w > 0; }));
  if (seen > keys.size()) {
    labels.more(output, fill_in(labels.word("more_keys"), {{"count", Text(fmt::format("{}", seen - keys.size()))},
                                                           {"percent", Text(labels.percent(std::max(rest, 0.0)))}}));
  }
}

// A head as seen from one token.
struct Place {
  size_t rank;  // in the order given
  double strength;
};

// Content heads by the strength of their strongest link from the token; then the others as given.
std::vector<Place> heads_for(const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads) {
  std::vector<Place> places;
  const std::vector<uint8_t> resting = resting_tokens(trace.info());
  for (size_t i = 0; i < heads.size(); ++i) {
    const std::vector<float> row = row_of(*head_weights(trace, heads[i].layer, heads[i].head), query);
    const auto link = strongest_link(row, query, resting);
    const double strength = link ? link->strength : 0;
    places.push_back({i, heads[i].kind == HeadKind::content ? strength : strength - 2});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.strength > b.strength; });
  return places;
}

// A key and the heads that look from the query at it, the strongest first.
struct Found {
  size_t key;
  std::vector<std::pair<float, const HeadSummary*>> finders;
};

std::vector<Found> found_from(const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads) {
  const auto& tokens = trace.info().tokens;
  std::vector<Found> all;
  for (size_t key = 0; key < tokens.size(); ++key) {
    if (key == query || tokens[key].special || text::is_punctuation(tokens[key].text)) continue;
    all.push_back({key, {}});
  }
  for (const HeadSummary& head : heads) {
    const std::vector<float> row = row_of(*head_weights(trace, head.layer, head.head), query);
    for (Found& found : all) {
      found.finders.emplace_back(row[found.key], &head);
      std::ranges::stable_sort(found.finders, std::ranges::greater(), &std::pair<float, const HeadSummary*>::first);
      if (found.finders.size() > kFindersOfEach) found.finders.pop_back();
    }
  }
  std::erase_if(all, [](const Found& found) { return found.finders.empty() || found.finders.front().first <= 0; });
  return all;
}

// For each word of the text the heads through which the query finds it; of a long text the words that are found best.
void draw_found(std::string& output, const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads,
                const Labels& labels) {
  const auto strength = [](const Found& found) { return found.finders.front().first; };
  std::vector<Found> all = found_from(trace, query, heads);
  if (all.empty()) return;
  if (all.size() > kMostFound) {
    std::ranges::stable_sort(all, std::ranges::greater(), strength);
    all.resize(kMostFound);
    std::ranges::sort(all, {}, &Found::key);
  }
  labels.heading(output, labels.word("found_title"));
  const auto& tokens = trace.info().tokens;
  size_t widest = 0;
  for (const Found& found : all) widest = std::max(widest, display_width(labels.token(tokens[found.key], 16)));
  for (const Found& found : all) {
    std::vector<Text> finders;
    for (const auto& [weight, head] : found.finders) {
      finders.push_back(labels.head(head->layer, head->head) + Text(" " + labels.percent(weight)));
    }
    labels.line(output, labels.token(tokens[found.key], Ink::key, 16).padded(widest) + Text("  ") +
                            joined(finders, labels.pen().write(labels.word("comma"), Ink::dim)));
  }
}

std::vector<float> without_special(std::span<const float> row, const std::vector<capture::TraceToken>& tokens) {
  std::vector<float> kept(row.begin(), row.end());
  for (size_t key = 0; key < kept.size(); ++key)
    if (tokens[key].special) kept[key] = 0;
  return kept;
}

}  // namespace

std::string draw_map_row(const AttentionMap& map, const MapOptions& options, const Labels& labels) {
  std::string output;
  const Pen& pen = labels.pen();
  const size_t query = *map.from;
  const std::vector<float> row = map.row(query);
  labels.title(output, fill_in(labels.word("map_row_title"), {{"model", labels.name(map.model)},
                                                              {"head", labels.head(map.layer, map.head)},
                                                              {"query", labels.token(map.tokens[query], Ink::query)},
                                                              {"index", Text(fmt::format("{}", map.places[query]))}}));
  if (!pen.colored()) labels.title(output, labels.sentence(map.tokens));
  if (pen.colored()) output += '\n';
  draw_strip(output, row, query, map.tokens, labels);
  draw_keys(output, row, map, labels);
  labels.notes(output, map.hidden_mass, options);
  return output;
}

std::string draw_row(const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads_in_order,
                     const MapOptions& options, const Style& style) {
  const Labels labels(style);
  const Pen& pen = labels.pen();
  const auto& tokens = trace.info().tokens;
  if (query >= tokens.size())
    base::refuse("from", fmt::format("a token below {}", tokens.size()), fmt::format("{}", query));
  std::string output;
  labels.title(output, fill_in(labels.word("row_title"), {{"model", labels.name(trace.info().model)},
                                                          {"query", labels.token(tokens[query], Ink::query)},
                                                          {"index", Text(fmt::format("{}", query))}}));
  labels.title(output, labels.sentence(tokens));
  labels.heading(output, labels.word("heads_title"));
  std::vector<Place> places = heads_for(trace, query, heads_in_order);
  const size_t left_out = places.size() - std::min(places.size(), kMostHeads);
  places.resize(places.size() - left_out);
  std::vector<Text> names, keys;
  std::vector<Text> bars;
  size_t widest_name = 0, widest_keys = 0;
  double hidden = 0;
  for (const Place& place : places) {
    const HeadSummary& head = heads_in_order[place.rank];
    const std::vector<float> full = row_of(*head_weights(trace, head.layer, head.head), query);
    const std::vector<float> row = options.hide_special ? without_special(full, tokens) : full;
    hidden += std::accumulate(full.begin(), full.end(), 0.0) - std::accumulate(row.begin(), row.end(), 0.0);
    names.push_back(pen.write(pen.glyph(head.kind), head.kind) + Text(" ") + labels.head(head.layer, head.head));
    keys.push_back(labels.strongest_of_row(row, tokens, options.top));
    bars.push_back(labels.bar_of_row(row, options.top, kBarColumnsOfHead));
    widest_name = std::max(widest_name, names.back().width());
    widest_keys = std::max(widest_keys, keys.back().width());
  }
  widest_keys = std::min(widest_keys, labels.width() - std::min(labels.width(), widest_name + kBarColumnsOfHead + 6));
  for (size_t i = 0; i < names.size(); ++i) {
    labels.line(output, names[i].padded(widest_name) + Text("  ") +
                            keys[i].cut(widest_keys, style).padded(widest_keys) + Text("  ") + bars[i]);
  }
  if (left_out > 0) {
    const Text count(fmt::format("{}", left_out));
    labels.more(output, fill_in(labels.word("more_heads"), {{"count", count}}));
  }
  draw_found(output, trace, query, heads_in_order, labels);
  labels.notes(output, places.empty() ? 0 : hidden / static_cast<double>(places.size()), options);
  return output;
}

}  // namespace clearhead::views
