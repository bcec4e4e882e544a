// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/head_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/unicode.h"
#include "clearhead/views/shown_weights.h"

namespace clearhead::views {
namespace {

using capture::Stage;

// A mean over the rows for which a figure has a meaning.
class Mean {
 public:
  void add(double value) { sum_ += value, ++count_; }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  size_t count_ = 0;
};

// Whether a token is nothing but punctuation, perhaps with spaces.
bool is_punctuation(std::string_view token) {
  const text::PropertyTable& properties = text::property_table();
  bool any = false;
  while (!token.empty()) {
    const base::CodePoint point = base::decode_utf8(token);
    if (point.value != ' ' && (properties[point.value] & text::kPunctuation) == 0) return false;
    any = any || point.value != ' ';
    token.remove_prefix(point.length);
  }
  return any;
}

// What all heads share.
struct Setting {
  std::vector<uint8_t> special, resting, punctuation;  // [seq]
  bool any_special = false, any_punctuation = false, rests_on_first = false;

  size_t seq_len() const { return special.size(); }
};

Setting setting_of(const capture::TraceInfo& info) {
  Setting setting;
  setting.resting = resting_tokens(info);
  for (const auto& token : info.tokens) {
    setting.special.push_back(token.special ? 1 : 0);
    setting.punctuation.push_back(!token.special && is_punctuation(token.text) ? 1 : 0);
    setting.any_special = setting.any_special || setting.special.back() != 0;
    setting.any_punctuation = setting.any_punctuation || setting.punctuation.back() != 0;
  }
  setting.rests_on_first = !setting.special.empty() && setting.resting[0] != 0 && setting.special[0] == 0;
  return setting;
}

// The links with the largest strength, found row by row.
class StrongestLinks {
 public:
  explicit StrongestLinks(size_t count) : count_(count) {}

  // Others stand behind all that were offered here.
  void merge(const StrongestLinks& others) {
    for (const Entry& entry : others.best_) offer(entry.strength, entry.link);
  }

  void offer(double strength, const Link& link) {
    if (count_ == 0 || (best_.size() == count_ && strength <= best_.back().strength)) return;
    const auto place = std::find_if(best_.begin(), best_.end(), [&](const Entry& e) { return e.strength < strength; });
    best_.insert(place, {strength, link});
    if (best_.size() > count_) best_.pop_back();
  }

  double largest() const { return best_.empty() ? 0 : best_.front().strength; }
  std::vector<Link> links() const {
    std::vector<Link> result;
    for (const Entry& entry : best_) result.push_back(entry.link);
    return result;
  }

 private:
  struct Entry {
    double strength;
    Link link;
  };
  size_t count_;
  std::vector<Entry> best_;
};

// Sums over one row of weights, and the weights of its neighbours; those that the query does not see are absent.
struct RowFigures {
  double mass = 0, largest = 0, entropy = 0, distance = 0, special = 0, resting = 0, punctuation = 0;
  size_t visible = 0;
  std::optional<float> previous, next, self, first;
};

// A row of weights and which of its keys may be seen.
struct WeightRow {
  size_t query;
  std::span<const float> weights;    // [seq]
  std::span<const uint8_t> visible;  // [seq]

  std::optional<float> seen(size_t key) const {
    return key < weights.size() && visible[key] != 0 ? std::optional(weights[key]) : std::nullopt;
  }
};

RowFigures row_figures(const Setting& setting, const WeightRow& row) {
  RowFigures figures;
  for (size_t key = 0; key < row.weights.size(); ++key) {
    const double weight = row.weights[key];
    if (row.visible[key] != 0) ++figures.visible;
    if (!(weight > 0) || !std::isfinite(weight)) continue;
    figures.mass += weight;
    figures.largest = std::max(figures.largest, weight);
    figures.entropy -= weight * std::log(weight);
    figures.distance += weight * std::abs(static_cast<double>(row.query) - static_cast<double>(key));
    if (setting.special[key] != 0) figures.special += weight;
    if (setting.resting[key] != 0) figures.resting += weight;
    if (setting.punctuation[key] != 0) figures.punctuation += weight;
  }
  if (row.query > 0) figures.previous = row.seen(row.query - 1);
  figures.next = row.seen(row.query + 1);
  figures.self = row.seen(row.query);
  figures.first = row.seen(0);
  return figures;
}

void offer_links(StrongestLinks& strongest, const Setting& setting, const WeightRow& row, const RowFigures& figures) {
  if (setting.resting[row.query] != 0 || figures.mass <= 0) return;
  const double share = (figures.mass - figures.resting) / figures.mass;
  for (size_t key = 0; key < row.weights.size(); ++key) {
    const float weight = row.weights[key];
    if (key != row.query && setting.resting[key] == 0 && weight > 0 && std::isfinite(weight))
      strongest.offer(weight * share, {row.query, key, weight});
  }
}

// What one head does in some rows that stand one after another.
struct HeadRows {
  std::vector<RowFigures> figures;
  StrongestLinks links;
};

HeadKind kind_of(const HeadSummary& summary, bool rests_on_first) {
  if (summary.previous > kPositionThreshold) return HeadKind::previous;
  if (summary.next > kPositionThreshold) return HeadKind::next;
  if (summary.self > kPositionThreshold) return HeadKind::self;
  if (summary.special > kMassThreshold) return HeadKind::special;
  if (rests_on_first && summary.first > kMassThreshold) return HeadKind::first;
  if (summary.punctuation > kMassThreshold) return HeadKind::punctuation;
  if (summary.relative_entropy > kBroadThreshold) return HeadKind::broad;
  return HeadKind::content;
}

constexpr size_t kQueries = 16;  // rows of all heads that are looked at together

// Rows [first, first + kQueries) of all heads of a layer.
std::vector<HeadRows> look_at_rows(const Setting& setting, const capture::WeightSource& weights, size_t first,
                                   size_t links_per_head) {
  const size_t seq_len = setting.seq_len(), count = std::min(kQueries, seq_len - first), heads = weights.num_heads();
  std::vector<float> rows(heads * count * seq_len);
  std::vector<uint8_t> visible(count * seq_len, 0);
  for (size_t head = 0; head < heads; ++head) {
    const auto part = std::span(rows).subspan(head * visible.size(), visible.size());
    weights.tile({0, head, first, count, 0, seq_len}, part);
    for (size_t i = 0; i < visible.size(); ++i) visible[i] |= part[i] != 0 ? 1 : 0;
  }
  std::vector<HeadRows> result;
  for (size_t head = 0; head < heads; ++head) {
    HeadRows& one = result.emplace_back(HeadRows{{}, StrongestLinks(links_per_head)});
    for (size_t i = 0; i < count; ++i) {
      const WeightRow row{first + i, std::span(rows).subspan((head * count + i) * seq_len, seq_len),
                          std::span(visible).subspan(i * seq_len, seq_len)};
      one.figures.push_back(row_figures(setting, row));
      offer_links(one.links, setting, row, one.figures.back());
    }
  }
  return result;
}

// The rows of one head, block after block, become its summary.
class Summary {
 public:
  explicit Summary(size_t links_per_head)
      : links_per_head_(links_per_head), links_(std::max<size_t>(1, links_per_head)) {}

  void add(const Setting& setting, const HeadRows& rows) {
    for (const RowFigures& figures : rows.figures) add(setting, figures);
    links_.merge(rows.links);
  }

  HeadSummary finish(const Setting& setting, size_t layer, size_t head) const {
    HeadSummary summary;
    summary.layer = layer;
    summary.head = head;
    summary.links = links_.links();
    summary.links.resize(std::min(summary.links.size(), links_per_head_));
    summary.telling = links_.largest();
    summary.entropy = entropy_.value();
    summary.relative_entropy = relative_entropy_.value();
    summary.strongest = strongest_.value();
    summary.previous = previous_.value();
    summary.next = next_.value();
    summary.self = self_.value();
    summary.first = first_.value();
    summary.special = special_.value();
    summary.punctuation = punctuation_.value();
    summary.mean_distance = distance_.value();
    summary.kind = kind_of(summary, setting.rests_on_first);
    return summary;
  }

 private:
  void add(const Setting& setting, const RowFigures& figures) {
    if (figures.mass <= 0) return;
    entropy_.add(figures.entropy);
    if (figures.visible >= 2) relative_entropy_.add(figures.entropy / std::log(static_cast<double>(figures.visible)));
    strongest_.add(figures.largest);
    distance_.add(figures.distance);
    if (figures.previous) previous_.add(*figures.previous);
    if (figures.next) next_.add(*figures.next);
    if (figures.self) self_.add(*figures.self);
    if (figures.first) first_.add(*figures.first);
    if (setting.any_special) special_.add(figures.special);
    if (setting.any_punctuation) punctuation_.add(figures.punctuation);
  }

  size_t links_per_head_;
  StrongestLinks links_;
  Mean entropy_, relative_entropy_, strongest_, previous_, next_, self_, first_, special_, punctuation_, distance_;
};

// Summaries of all heads of some layers, layer by layer.
std::vector<HeadSummary> summarize_layers(const capture::Trace& trace, const std::vector<size_t>& layers,
                                          size_t links_per_head) {
  const auto& heads = trace.info().heads;
  const Setting setting = setting_of(trace.info());
  std::vector<ShownWeights> weights;
  for (const size_t layer : layers) weights.push_back(layer_weights(trace, layer));
  const size_t blocks = (setting.seq_len() + kQueries - 1) / kQueries;
  std::vector<std::vector<HeadRows>> rows(layers.size() * blocks);
  base::parallel_for(rows.size(), [&](size_t unit) {
    rows[unit] =
        look_at_rows(setting, *weights[unit / blocks], unit % blocks * kQueries, std::max<size_t>(1, links_per_head));
  });
  std::vector<HeadSummary> summaries;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (size_t head = 0; head < heads.size(); ++head) {
      Summary summary(links_per_head);
      for (size_t block = 0; block < blocks; ++block) summary.add(setting, rows[layer * blocks + block][head]);
      summaries.push_back(summary.finish(setting, layers[layer], heads[head]));
    }
  }
  return summaries;
}

}  // namespace

std::string_view name_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::previous: return "previous";
    case HeadKind::next: return "next";
    case HeadKind::self: return "self";
    case HeadKind::special: return "special";
    case HeadKind::first: return "first";
    case HeadKind::punctuation: return "punctuation";
    case HeadKind::broad: return "broad";
    case HeadKind::content: return "content";
  }
  return {};
}

std::string_view kind_rules() {
  static const std::string text = fmt::format(
      "previous     mean weight on the token before is over {0}\n"
      "next         mean weight on the token after is over {0}\n"
      "self         mean weight on the token itself is over {0}\n"
      "special      mean mass on special tokens is over {1}\n"
      "first        mean weight on the first token is over {1}, if heads rest there\n"
      "punctuation  mean mass on punctuation is over {1}\n"
      "broad        mean of entropy over the log of the number of visible keys is over {2}\n"
      "content      none of these: it links words\n"
      "The first that holds. Means are over the rows that see such a key. Content heads are ranked by their strongest\n"
      "link between two different tokens on which heads do not rest: its weight times the share of the row's mass "
      "that\n"
      "is on such tokens. Heads rest on special tokens, and on the first token of a text that is read from left to\n"
      "right and begins without one.\n",
      kPositionThreshold, kMassThreshold, kBroadThreshold);
  return text;
}

std::optional<RankedLink> strongest_link(std::span<const float> row, size_t query, std::span<const uint8_t> resting) {
  if (resting[query] != 0) return {};
  double mass = 0, rest = 0;
  std::optional<RankedLink> best;
  for (size_t key = 0; key < row.size(); ++key) {
    if (!(row[key] > 0) || !std::isfinite(row[key])) continue;
    mass += row[key];
    if (resting[key] != 0) rest += row[key];
    if (key == query || resting[key] != 0) continue;
    if (!best || row[key] > best->link.weight) best = RankedLink{{query, key, row[key]}, 0};
  }
  if (best) best->strength = best->link.weight * (mass - rest) / mass;
  return best;
}

std::vector<uint8_t> resting_tokens(const capture::TraceInfo& info) {
  std::vector<uint8_t> resting;
  for (const capture::TraceToken& token : info.tokens) resting.push_back(token.special ? 1 : 0);
  if (!resting.empty() && info.causal()) resting[0] = 1;
  return resting;
}

HeadSummary summarize_head(const capture::Trace& trace, size_t layer, size_t head, size_t links_per_head) {
  head_weights(trace, layer, head);  // says what is missing
  const auto summaries = summarize_layers(trace, {layer}, links_per_head);
  return *std::ranges::find(summaries, head, &HeadSummary::head);
}

std::vector<HeadSummary> summarize_heads(const capture::Trace& trace, size_t links_per_head) {
  std::vector<size_t> layers;
  for (const size_t layer : trace.info().layers) {
    if (trace.shows(Stage::weights, layer) && !trace.info().heads.empty()) layers.push_back(layer);
  }
  if (layers.empty()) base::fail("weights", "a trace with weights", "none", "record the stage weights");
  return summarize_layers(trace, layers, links_per_head);
}

std::vector<HeadSummary> in_order_of_telling(std::vector<HeadSummary> heads) {
  const auto rank = [](const HeadSummary& head) {
    const bool content = head.kind == HeadKind::content;
    return std::tuple(!content, content ? HeadKind::previous : head.kind, content ? -head.telling : 0.0, head.layer,
                      head.head);
  };
  std::sort(heads.begin(), heads.end(), [&](const HeadSummary& a, const HeadSummary& b) { return rank(a) < rank(b); });
  return heads;
}

}  // namespace clearhead::views
