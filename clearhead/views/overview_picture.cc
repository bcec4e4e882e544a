// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "clearhead/views/attention_map.h"
#include "clearhead/views/labels.h"

namespace clearhead::views {
namespace {

constexpr size_t kTellingHeads = 8;  // named by themselves
constexpr size_t kMostTokens = 12;   // of the text, each with its most telling head
constexpr size_t kMostGridLayers = 12;
constexpr size_t kMostGridHeads = 24;
constexpr size_t kBarColumns = 16;
constexpr size_t kBarColumnsIfNarrow = 8;
constexpr size_t kNarrow = 100, kTooNarrow = 60;
constexpr size_t kIndent = 2;      // of names that go on in a second line
constexpr double kFaintest = 0.3;  // place on the colour scale that can still be seen as a dot

// The whole model on one text, section by section.
class Overview {
 public:
  Overview(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const Labels& labels)
      : trace_(trace), tokens_(trace.info().tokens), heads_(heads), labels_(labels), pen_(labels.pen()) {}

  void draw_title(std::string& output, bool hide_special) const {
    const auto number = [&](size_t value) { return pen_.write(fmt::format("{}", value), Ink::strong); };
    const capture::TraceInfo& info = trace_.info();
    labels_.title(output, fill_in(labels_.word("overview_title"),
                                  {{"model", labels_.name(info.model)},
                                   {"layers", number(info.num_layers)},
                                   {"times", Text(pen_.times())},
                                   {"heads", number(info.num_heads)},
                                   {"token_count", labels_.token_count(tokens_.size(), Ink::strong)}}));
    std::vector<capture::TraceToken> shown;
    for (const auto& token : tokens_)
      if (!hide_special || !token.special) shown.push_back(token);
    labels_.title(output, labels_.sentence(shown));
  }

  void draw_telling(std::string& output) const {
    labels_.heading(output, labels_.word("telling_title"));
    std::vector<Text> sentences;
    size_t widest = 0;
    for (const HeadSummary& head : heads_) {
      if (head.kind != HeadKind::content || head.links.empty() || sentences.size() == kTellingHeads) break;
      sentences.push_back(labels_.looks(head, head.links.front(), tokens_));
      widest = std::max(widest, sentences.back().width());
    }
    if (sentences.empty()) labels_.line(output, pen_.write(labels_.word("none_telling"), Ink::dim));
    widest = std::min(widest, labels_.width() - bar_columns() - 5);
    for (size_t i = 0; i < sentences.size(); ++i) {
      Text line = sentences[i].cut(widest, pen_.style()).padded(widest) + Text("  ") +
                  pen_.bar(heads_[i].links.front().weight, bar_columns());
      labels_.line(output,
                   line + other_links(heads_[i], labels_.width() - std::min(labels_.width(), line.width() + 2)));
    }
    const size_t all = count(HeadKind::content);
    if (all > sentences.size() && !sentences.empty()) {
      const Text number(fmt::format("{}", all - sentences.size()));
      labels_.more(output, fill_in(labels_.word("more_telling"), {{"count", number}}));
    }
  }

  // A small picture of all heads, and beside it what each kind does and which heads are of it.
  void draw_kinds(std::string& output) const {
    labels_.heading(output, labels_.word("kinds_title"));
    const std::vector<Text> grid = grid_lines();
    const size_t left = grid.empty() ? 0 : grid.back().width() + 3;
    const std::vector<Text> kinds = kind_lines(labels_.width() - 2 - left, grid.size());
    for (size_t i = 0; i < std::max(grid.size(), kinds.size()); ++i) {
      const Text beside = i < kinds.size() ? kinds[i] : Text();
      labels_.line(output, (i < grid.size() ? grid[i] : Text()).padded(left) + beside);
    }
  }

  void draw_tokens(std::string& output) const {
    std::vector<Best> best = best_per_token();
    if (best.empty()) return;
    labels_.heading(output, labels_.word("best_title"));
    const size_t all = best.size();
    if (all > kMostTokens) keep_strongest(best);
    std::vector<Text> links;
    size_t widest_query = 0, widest = 0;
    for (const Best& one : best) {
      widest_query = std::max(widest_query, leading(one).width());
      links.push_back(labels_.token(tokens_[one.link.key], Ink::key, 16) + Text(" ") +
                      Text(labels_.percent(one.link.weight)));
      widest = std::max(widest, links.back().width());
    }
    for (size_t i = 0; i < best.size(); ++i) {
      labels_.line(output, leading(best[i]).padded(widest_query) + Text(" ") + pen_.write(pen_.arrow(), Ink::dim) +
                               Text(" ") + links[i].padded(widest) + Text("  ") +
                               pen_.bar(best[i].link.weight, kBarColumns) + Text("  ") +
                               labels_.head(best[i].head->layer, best[i].head->head));
    }
    if (all > best.size()) {
      const Text number(fmt::format("{}", all - best.size()));
      labels_.more(output, fill_in(labels_.word("more_tokens"), {{"count", number}}));
    }
  }

  // Mean over heads of what special tokens take of a row.
  double special_mass() const {
    double sum = 0;
    for (const HeadSummary& head : heads_) sum += head.special.value_or(0);
    return heads_.empty() ? 0 : sum / static_cast<double>(heads_.size());
  }

 private:
  // One token's strongest link over the heads, and the head that has it.
  struct Best {
    Link link;
    double strength;
    const HeadSummary* head;
  };

  Text leading(const Best& best) const {
    return labels_.leading_token(tokens_[best.link.query], best.link.query, tokens_.size());
  }

  // Words go before bars where there is room for one of them only.
  size_t bar_columns() const {
    return labels_.width() < kTooNarrow ? 0 : labels_.width() < kNarrow ? kBarColumnsIfNarrow : kBarColumns;
  }

  size_t count(HeadKind kind) const {
    return static_cast<size_t>(
        std::count_if(heads_.begin(), heads_.end(), [&](const auto& h) { return h.kind == kind; }));
  }

  // The head's next links between other tokens, as many as fit.
  Text other_links(const HeadSummary& head, size_t room) const {
    Text line;
    for (size_t i = 1; i < head.links.size() && i < 4; ++i) {
      const Link& link = head.links[i];
      if (link.weight < 0.1F) break;
      const Text next = Text("  ") + labels_.link(link, tokens_);
      if (line.width() + next.width() > room) break;
      line += next;
    }
    return line;
  }

  const HeadSummary* at(size_t layer, size_t head) const {
    const auto found =
        std::find_if(heads_.begin(), heads_.end(), [&](const auto& h) { return h.layer == layer && h.head == head; });
    return found == heads_.end() ? nullptr : &*found;
  }

  // Empty if the model is too large for a small picture.
  std::vector<Text> grid_lines() const {
    const auto& layers = trace_.info().layers;
    const auto& heads = trace_.info().heads;
    if (layers.size() > kMostGridLayers || heads.size() > kMostGridHeads || labels_.width() < 60) return {};
    std::vector<Text> lines;
    std::string ruler(3, ' ');
    for (size_t i = 0; i < heads.size(); ++i) ruler += i % 5 == 0 ? fmt::format("{:<2}", heads[i]) : "  ";
    lines.push_back(pen_.write(ruler, Ink::dim));
    for (const size_t layer : layers) {
      Text line = pen_.write(fmt::format("{:>2} ", layer), Ink::dim);
      for (const size_t head : heads) line += grid_cell(at(layer, head));
      lines.push_back(line);
    }
    return lines;
  }

  Text grid_cell(const HeadSummary* head) const {
    if (head == nullptr) return Text("  ");
    if (pen_.colored() && head->kind == HeadKind::content) {
      const double place = std::max(scale_place(head->telling), kFaintest);
      return pen_.paint(fmt::format("{} ", pen_.glyph(head->kind)), scale_color(place, pen_.style().dark), {});
    }
    return pen_.write(fmt::format("{} ", pen_.glyph(head->kind)), head->kind);
  }

  // A line per kind; lines that stand free beside the grid are given to the kinds with many heads.
  std::vector<Text> kind_lines(size_t room, size_t height) const {
    std::vector<std::vector<Text>> blocks;
    for (const HeadKind kind : {HeadKind::content, HeadKind::previous, HeadKind::next, HeadKind::self,
                                HeadKind::punctuation, HeadKind::broad, HeadKind::first, HeadKind::special}) {
      if (count(kind) != 0) blocks.push_back(kind_block(kind, room));
    }
    size_t free = height - std::min(height, blocks.size());
    std::vector<Text> lines;
    for (const auto& block : blocks) {
      const size_t shown = std::min(block.size(), 1 + free);
      free -= shown - 1;
      for (size_t i = 0; i < shown; ++i)
        lines.push_back(i == 0 ? block[i] : Text(std::string(kIndent, ' ')) + block[i]);
      if (shown < block.size()) lines.back() = (lines.back() + block[shown]).cut(room, pen_.style());
    }
    return lines;
  }

  // "previous token: layer 0 heads 2, 5; layer 3 head 1", as many lines as it takes.
  std::vector<Text> kind_block(HeadKind kind, size_t room) const {
    const Text name = labels_.kind_text(kind);
    const Text number(fmt::format("{}", count(kind)));
    if (kind == HeadKind::content) {
      const auto sentence = count(kind) == 1 ? "content_line_one" : "content_line";
      return {fill_in(labels_.word(sentence), {{"kind", name}, {"count", number}})};
    }
    const auto sentence = labels_.word(count(kind) <= 3 ? "kind_line" : "kind_line_many");
    std::vector<Text> lines{fill_in(sentence, {{"kind", name}, {"count", number}, {"heads", Text()}})};
    const Text mark(labels_.word("semicolon"));
    bool first = true;
    for (const Text& group : names_of(kind)) {
      const Text next = first ? group : mark + group;
      if (lines.back().width() + next.width() + kIndent <= room) {
        lines.back() += next;
      } else {
        if (!first) lines.back() += mark;
        lines.push_back(group);
      }
      first = false;
    }
    return lines;
  }

  // By layer: "layer 0 heads 2, 5", "layer 3 head 1".
  std::vector<Text> names_of(HeadKind kind) const {
    std::map<size_t, std::vector<Text>> by_layer;
    for (const HeadSummary& head : heads_)
      if (head.kind == kind) by_layer[head.layer].push_back(Text(fmt::format("{}", head.head)));
    std::vector<Text> groups;
    for (const auto& [layer, heads] : by_layer) {
      const Text number(fmt::format("{}", layer));
      const Text list = joined(heads, Text(labels_.word("comma")));
      groups.push_back(heads.size() == 1 ? fill_in(labels_.word("head"), {{"layer", number}, {"head", list}})
                                         : fill_in(labels_.word("heads"), {{"layer", number}, {"heads", list}}));
    }
    return groups;
  }

  std::vector<Best> best_per_token() const {
    std::vector<std::optional<Best>> found(tokens_.size());
    const std::vector<uint8_t> resting = resting_tokens(trace_.info());
    for (const HeadSummary& head : heads_) {
      if (head.kind != HeadKind::content) break;
      for_each_row(*head_weights(trace_, head.layer, head.head), [&](size_t query, std::span<const float> row) {
        const auto link = strongest_link(row, query, resting);
        std::optional<Best>& best = found[query];
        if (link && (!best || link->strength > best->strength)) best = Best{link->link, link->strength, &head};
      });
    }
    std::vector<Best> all;
    for (const auto& best : found)
      if (best) all.push_back(*best);
    return all;
  }

  static void keep_strongest(std::vector<Best>& best) {
    std::stable_sort(best.begin(), best.end(), [](const Best& a, const Best& b) { return a.strength > b.strength; });
    best.resize(kMostTokens);
    std::sort(best.begin(), best.end(), [](const Best& a, const Best& b) { return a.link.query < b.link.query; });
  }

  const capture::Trace& trace_;
  const std::vector<capture::TraceToken>& tokens_;
  const std::vector<HeadSummary>& heads_;
  const Labels& labels_;
  const Pen& pen_;
};

}  // namespace

std::string draw_overview(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order,
                          const MapOptions& options, const Style& style) {
  const Labels labels(style);
  const Overview overview(trace, heads_in_order, labels);
  std::string output;
  overview.draw_title(output, options.hide_special);
  overview.draw_telling(output);
  overview.draw_kinds(output);
  overview.draw_tokens(output);
  labels.notes(output, overview.special_mass(), options);
  return output;
}

}  // namespace clearhead::views
