// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/labels.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "clearhead/views/wrap.h"

namespace clearhead::views {
namespace {

constexpr size_t kLeastWidth = 40, kMostWidth = 200;

// Spaces at the edges of a token matter to a model and cannot be seen.
std::string with_visible_edges(const std::string& text, bool ascii) {
  const std::string_view space = ascii ? "_" : "\xE2\x90\xA3";
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const size_t end = begin == text.size() ? begin : text.find_last_not_of(' ') + 1;
  std::string output;
  for (size_t i = 0; i < begin; ++i) output += space;
  output += text.substr(begin, end - begin);
  for (size_t i = end; i < text.size(); ++i) output += space;
  return output;
}

}  // namespace

Labels::Labels(const Style& style)
    : pen_(style), words_(words_of(style.language)), width_(std::clamp(style.width, kLeastWidth, kMostWidth)) {}

std::string Labels::token(const capture::TraceToken& token, size_t columns) const {
  const Style& style = pen_.style();
  std::string text = with_visible_edges(printable(token.text, style), style.ascii);
  if (text.empty()) text = style.ascii ? "\"\"" : "\xE2\x88\x85";
  return display_width(text) <= columns ? text : fit(text, columns, style);
}

Text Labels::token(const capture::TraceToken& token, Ink ink, size_t columns) const {
  return pen_.write(this->token(token, columns), token.special ? Ink::special : ink);
}

Text Labels::leading_token(const capture::TraceToken& token, size_t place, size_t seq_len) const {
  constexpr size_t kCountedByEye = 12, kColumns = 16;
  const Text name = this->token(token, Ink::query, kColumns);
  if (seq_len <= kCountedByEye) return name;
  const size_t digits = fmt::formatted_size("{}", seq_len - 1);
  return pen_.write(fmt::format("{:>{}} ", place, digits), Ink::dim) + name;
}

std::string Labels::percent(double weight) const {
  const long rounded = std::isfinite(weight) ? std::lround(100 * weight) : 0;
  const std::string value = rounded == 0 && weight > 0 ? "<1" : fmt::format("{}", rounded);
  return fill_in(word("percent"), {{"value", Text(value)}}).str();
}

Text Labels::token_count(size_t count, Ink ink) const {
  return fill_in(word(count == 1 ? "token_count_one" : "token_count"),
                 {{"tokens", pen_.write(fmt::format("{}", count), ink)}});
}

Text Labels::head(size_t layer, size_t head) const {
  return fill_in(word("head"), {{"layer", pen_.write(fmt::format("{}", layer), Ink::strong)},
                                {"head", pen_.write(fmt::format("{}", head), Ink::strong)}});
}

std::string_view Labels::kind(HeadKind kind) const { return word(fmt::format("kind.{}", name_of(kind))); }

Text Labels::kind_text(HeadKind kind) const {
  return pen_.write(fmt::format("{} {}", pen_.glyph(kind), this->kind(kind)), kind);
}

Text Labels::name(std::string_view model) const { return pen_.write(printable(model, pen_.style()), Ink::strong); }

Text Labels::looks(const HeadSummary& summary, const Link& link, const std::vector<capture::TraceToken>& tokens) const {
  return fill_in(word("looks"), {{"head", head(summary.layer, summary.head)},
                                 {"query", token(tokens[link.query], Ink::query)},
                                 {"key", token(tokens[link.key], Ink::key)},
                                 {"percent", pen_.write(percent(link.weight), Ink::strong)}});
}

Text Labels::link(const Link& link, const std::vector<capture::TraceToken>& tokens) const {
  return fill_in(word("link"), {{"query", token(tokens[link.query], Ink::query)},
                                {"arrow", pen_.write(pen_.arrow(), Ink::dim)},
                                {"key", token(tokens[link.key], Ink::key)},
                                {"percent", pen_.write(percent(link.weight), Ink::plain)}});
}

Text Labels::strongest_of_row(std::span<const float> row, const std::vector<capture::TraceToken>& tokens,
                              size_t top) const {
  std::vector<Text> parts;
  double rest = std::accumulate(row.begin(), row.end(), 0.0);
  const double mass = rest;
  for (const size_t key : largest_of_row(row, top)) {
    parts.push_back(pen_.in_strength(token(tokens[key], 16), parts.size()) + Text(" ") + Text(percent(row[key])));
    rest -= row[key];
  }
  if (parts.empty()) return pen_.write(word("nothing"), Ink::dim);
  // What hidden tokens took belongs to the rest as well.
  rest = std::max(rest, 0.0) + std::max(0.0, 1 - mass);
  if (std::lround(100 * rest) > 0)
    parts.push_back(pen_.write(fill_in(word("rest"), {{"percent", Text(percent(rest))}}).str(), Ink::dim));
  return joined(parts, pen_.write(word("comma"), Ink::dim));
}

Text Labels::bar_of_row(std::span<const float> row, size_t top, size_t columns) const {
  std::vector<float> parts;
  for (const size_t key : largest_of_row(row, top)) parts.push_back(row[key]);
  return pen_.stacked_bar(parts, columns);
}

Text Labels::sentence(const std::vector<capture::TraceToken>& tokens) const {
  // More than a line can hold need not be built.
  const size_t count = std::min<size_t>(tokens.size(), kMostWidth);
  std::vector<Text> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(token(tokens[i], Ink::plain));
  return joined(parts, Text(" "));
}

void Labels::title(std::string& output, const Text& text) const {
  const Text mark = pen_.write(pen_.style().ascii ? "|" : "\xE2\x96\x8C", Ink::title);
  line(output, mark + Text(" ") + text, 1);
}

void Labels::heading(std::string& output, std::string_view text) const {
  output += '\n';
  const Text name = pen_.write(text, Ink::title).cut(width_ - 2, pen_.style());
  const size_t used = name.width() + 2;
  line(output, used + 4 < width_ ? name + Text(" ") + pen_.line(width_ - used - 2) : name, 1);
}

void Labels::more(std::string& output, const Text& text) const {
  line(output, pen_.write(fmt::format("{} ", pen_.ellipsis()), Ink::dim) + text);
}

void Labels::note(std::string& output, const std::string& text) const {
  const std::string_view mark = pen_.style().ascii ? "*" : "\xE2\x80\xBB";
  bool first = true;
  for (const std::string& part : wrap(text, width_ - 4, pen_.style())) {
    line(output, (first ? pen_.write(mark, Ink::dim) : Text(" ")) + Text(" ") + Text(part));
    first = false;
  }
}

void Labels::notes(std::string& output, double hidden_mass, const MapOptions& options) const {
  if (options.hide_special || options.words) output += '\n';
  if (options.hide_special) note(output, fill_in(word("hidden"), {{"percent", Text(percent(hidden_mass))}}).str());
  if (options.words) note(output, std::string(word("joined")));
}

void Labels::line(std::string& output, const Text& text, size_t indent) const {
  std::string shown = std::string(indent, ' ') + text.cut(width_ - indent, pen_.style()).str();
  shown.erase(shown.find_last_not_of(' ') + 1);
  output += shown + '\n';
}

std::vector<size_t> largest_of_row(std::span<const float> row, size_t count) {
  std::vector<size_t> keys;
  for (size_t key = 0; key < row.size(); ++key)
    if (row[key] > 0) keys.push_back(key);
  const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, keys.size()));
  std::partial_sort(keys.begin(), middle, keys.end(),
                    [&](size_t a, size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  keys.erase(middle, keys.end());
  return keys;
}

}  // namespace clearhead::views
