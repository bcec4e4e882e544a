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
#include "clearhead/tensor/tensor.h"
#include "clearhead/text/unicode.h"

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

// What all heads of a layer share.
struct Setting {
  size_t layer = 0;
  size_t seq_len = 0;
  std::vector<uint8_t> special, punctuation;  // [seq]
  bool any_special = false, any_punctuation = false;
  std::vector<uint8_t> visible;  // [seq, seq]

  bool sees(size_t query, size_t key) const { return visible[query * seq_len + key] != 0; }
};

Setting setting_of(const capture::Trace& trace, size_t layer) {
  Setting setting;
  setting.layer = layer;
  const auto& tokens = trace.info().tokens;
  setting.seq_len = tokens.size();
  for (const auto& token : tokens) {
    setting.special.push_back(token.special ? 1 : 0);
    setting.punctuation.push_back(!token.special && is_punctuation(token.text) ? 1 : 0);
    setting.any_special = setting.any_special || setting.special.back() != 0;
    setting.any_punctuation = setting.any_punctuation || setting.punctuation.back() != 0;
  }
  const size_t size = setting.seq_len * setting.seq_len;
  setting.visible.assign(size, 0);
  for (const size_t head : trace.info().heads) {
    const auto weights = head_weights(trace, layer, head);
    for (size_t i = 0; i < size; ++i) setting.visible[i] |= weights[i] != 0 ? 1 : 0;
  }
  return setting;
}

// The links with the largest strength, found row by row.
class StrongestLinks {
 public:
  explicit StrongestLinks(size_t count) : count_(count) {}

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

// Sums over one row of weights.
struct RowFigures {
  double mass = 0, largest = 0, entropy = 0, distance = 0, special = 0, punctuation = 0;
  size_t visible = 0;
};

RowFigures row_figures(const Setting& setting, std::span<const float> row, size_t query) {
  RowFigures figures;
  for (size_t key = 0; key < row.size(); ++key) {
    const double weight = row[key];
    if (setting.sees(query, key)) ++figures.visible;
    if (!(weight > 0) || !std::isfinite(weight)) continue;
    figures.mass += weight;
    figures.largest = std::max(figures.largest, weight);
    figures.entropy -= weight * std::log(weight);
    figures.distance += weight * std::abs(static_cast<double>(query) - static_cast<double>(key));
    if (setting.special[key] != 0) figures.special += weight;
    if (setting.punctuation[key] != 0) figures.punctuation += weight;
  }
  return figures;
}

void offer_links(StrongestLinks& strongest, const Setting& setting, std::span<const float> row, size_t query,
                 const RowFigures& figures) {
  if (setting.special[query] != 0) return;
  const double share = (figures.mass - figures.special) / figures.mass;
  for (size_t key = 0; key < row.size(); ++key) {
    if (key != query && setting.special[key] == 0 && row[key] > 0 && std::isfinite(row[key]))
      strongest.offer(row[key] * share, {query, key, row[key]});
  }
}

HeadKind kind_of(const HeadSummary& summary) {
  if (summary.previous > kPositionThreshold) return HeadKind::previous;
  if (summary.next > kPositionThreshold) return HeadKind::next;
  if (summary.self > kPositionThreshold) return HeadKind::self;
  if (summary.special > kMassThreshold) return HeadKind::special;
  if (summary.punctuation > kMassThreshold) return HeadKind::punctuation;
  if (summary.relative_entropy > kBroadThreshold) return HeadKind::broad;
  return HeadKind::content;
}

HeadSummary summarize(const Setting& setting, std::span<const float> weights, size_t head, size_t links_per_head) {
  const size_t seq_len = setting.seq_len;
  Mean entropy, relative_entropy, strongest, previous, next, self, first, special, punctuation, distance;
  StrongestLinks links(std::max<size_t>(1, links_per_head));
  for (size_t query = 0; query < seq_len; ++query) {
    const auto row = weights.subspan(query * seq_len, seq_len);
    const RowFigures figures = row_figures(setting, row, query);
    if (figures.mass <= 0) continue;
    entropy.add(figures.entropy);
    if (figures.visible >= 2) relative_entropy.add(figures.entropy / std::log(static_cast<double>(figures.visible)));
    strongest.add(figures.largest);
    distance.add(figures.distance);
    if (query > 0 && setting.sees(query, query - 1)) previous.add(row[query - 1]);
    if (query + 1 < seq_len && setting.sees(query, query + 1)) next.add(row[query + 1]);
    if (setting.sees(query, query)) self.add(row[query]);
    if (setting.sees(query, 0)) first.add(row[0]);
    if (setting.any_special) special.add(figures.special);
    if (setting.any_punctuation) punctuation.add(figures.punctuation);
    offer_links(links, setting, row, query, figures);
  }
  HeadSummary summary;
  summary.layer = setting.layer;
  summary.head = head;
  summary.links = links.links();
  summary.links.resize(std::min(summary.links.size(), links_per_head));
  summary.telling = links.largest();
  summary.entropy = entropy.value();
  summary.relative_entropy = relative_entropy.value();
  summary.strongest = strongest.value();
  summary.previous = previous.value();
  summary.next = next.value();
  summary.self = self.value();
  summary.first = first.value();
  summary.special = special.value();
  summary.punctuation = punctuation.value();
  summary.mean_distance = distance.value();
  summary.kind = kind_of(summary);
  return summary;
}

}  // namespace

std::string_view name_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::previous: return "previous";
    case HeadKind::next: return "next";
    case HeadKind::self: return "self";
    case HeadKind::special: return "special";
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
      "punctuation  mean mass on punctuation is over {1}\n"
      "broad        mean of entropy over the log of the number of visible keys is over {2}\n"
      "content      none of these: it links words\n"
      "The first that holds. Means are over the rows that see such a key. Content heads are ranked by their strongest\n"
      "link between two different, non-special tokens: its weight times the share of the row's mass that is on\n"
      "non-special tokens.\n",
      kPositionThreshold, kMassThreshold, kBroadThreshold);
  return text;
}

std::span<const float> head_weights(const capture::Trace& trace, size_t layer, size_t head) {
  const auto& heads = trace.info().heads;
  const auto place = std::find(heads.begin(), heads.end(), head);
  if (place == heads.end() || !trace.has(Stage::weights, layer)) {
    base::fail("weights", fmt::format("recorded weights of layer {} head {}", layer, head), "none",
               "record the stage weights of this layer and head");
  }
  const tensor::Tensor& weights = trace.tensor(Stage::weights, layer);
  const size_t seq_len = trace.info().tokens.size();
  const tensor::Shape expected{1, heads.size(), seq_len, seq_len};
  if (weights.shape() != expected) {
    base::fail("weights", fmt::format("weights of shape {} in layer {}", expected.text(), layer),
               weights.shape().text());
  }
  const auto size = seq_len * seq_len;
  return weights.as<float>().subspan(static_cast<size_t>(place - heads.begin()) * size, size);
}

std::optional<RankedLink> strongest_link(std::span<const float> row, size_t query,
                                         const std::vector<capture::TraceToken>& tokens) {
  if (tokens[query].special) return {};
  double mass = 0, special = 0;
  std::optional<RankedLink> best;
  for (size_t key = 0; key < row.size(); ++key) {
    if (!(row[key] > 0) || !std::isfinite(row[key])) continue;
    mass += row[key];
    if (tokens[key].special) special += row[key];
    if (key == query || tokens[key].special) continue;
    if (!best || row[key] > best->link.weight) best = RankedLink{{query, key, row[key]}, 0};
  }
  if (best) best->strength = best->link.weight * (mass - special) / mass;
  return best;
}

HeadSummary summarize_head(const capture::Trace& trace, size_t layer, size_t head, size_t links_per_head) {
  const auto weights = head_weights(trace, layer, head);
  return summarize(setting_of(trace, layer), weights, head, links_per_head);
}

std::vector<HeadSummary> summarize_heads(const capture::Trace& trace, size_t links_per_head) {
  const auto& heads = trace.info().heads;
  std::vector<HeadSummary> summaries;
  for (const size_t layer : trace.info().layers) {
    if (!trace.has(Stage::weights, layer) || heads.empty()) continue;
    const Setting setting = setting_of(trace, layer);
    const size_t begin = summaries.size();
    summaries.resize(begin + heads.size());
    base::parallel_for(heads.size(), [&](size_t i) {
      summaries[begin + i] = summarize(setting, head_weights(trace, layer, heads[i]), heads[i], links_per_head);
    });
  }
  if (summaries.empty()) base::fail("weights", "a trace with weights", "none", "record the stage weights");
  std::sort(summaries.begin(), summaries.end(), [](const HeadSummary& a, const HeadSummary& b) {
    return std::tie(a.layer, a.head) < std::tie(b.layer, b.head);
  });
  return summaries;
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
