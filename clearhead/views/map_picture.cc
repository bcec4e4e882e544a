// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "clearhead/views/attention_map.h"
#include "clearhead/views/labels.h"
#include "clearhead/views/map_layout.h"
#include "clearhead/views/row_picture.h"

namespace clearhead::views {
namespace {

constexpr size_t kMostLetters = 10;     // of a name that is written downwards
constexpr size_t kMostRowsListed = 40;  // tokens below a map
constexpr size_t kFewRowsListed = 24;   // of a text that is longer
constexpr size_t kBarColumns = 20;

// Centred; odd columns are left over at the right.
Text centred(const Text& text, size_t columns) {
  const size_t left = columns > text.width() ? (columns - text.width()) / 2 : 0;
  return (Text(std::string(left, ' ')) + text).padded(columns);
}

// One map, drawn line by line.
class MapPicture {
 public:
  MapPicture(const AttentionMap& map, const Labels& labels)
      : map_(map), labels_(labels), pen_(labels.pen()), layout_(map_layout(map, labels)) {
    weights_ = pooled_by_maximum(*map.weights, layout_.pool);
  }

  size_t pool() const { return layout_.pool; }

  void draw(std::string& output) const {
    draw_column_names(output);
    const size_t step = layout_.half_blocks ? 2 : 1;
    for (size_t row = 0; row < layout_.bins; row += step) labels_.line(output, row_name(row) + Text(" ") + cells(row));
  }

 private:
  float weight(size_t row, size_t column) const { return weights_[row * layout_.bins + column]; }

  void draw_column_names(std::string& output) const {
    const Text margin(std::string(layout_.label + 1, ' '));
    if (layout_.names == ColumnNames::horizontal) {
      Text line = margin;
      for (const auto& token : map_.tokens)
        line += centred(labels_.token(token, Ink::key, layout_.cell - 1), layout_.cell);
      labels_.line(output, line);
    } else if (layout_.names == ColumnNames::vertical) {
      draw_names_downwards(output, margin);
    } else {
      labels_.line(output, margin + ruler());
    }
  }

  // Every name reads from above, its last letter on the map.
  void draw_names_downwards(std::string& output, const Text& margin) const {
    std::vector<std::vector<std::string>> names;
    size_t height = 0;
    for (const auto& token : map_.tokens) {
      const std::string name = labels_.token(token, 2 * kMostLetters);
      std::vector<std::string> letters;
      for (const Cluster& cluster : clusters(name)) letters.emplace_back(cluster.text);
      if (letters.size() > kMostLetters) {
        letters.resize(kMostLetters);
        letters.back() = pen_.style().ascii ? ":" : "\xE2\x8B\xAE";
      }
      height = std::max(height, letters.size());
      names.push_back(std::move(letters));
    }
    for (size_t level = height; level > 0; --level) {
      Text line = margin;
      for (size_t i = 0; i < names.size(); ++i) {
        const auto& letters = names[i];
        const std::string letter = letters.size() >= level ? letters[letters.size() - level] : "";
        const Ink ink = map_.tokens[i].special ? Ink::special : Ink::key;
        line += centred(pen_.write(letter, ink), layout_.cell);
      }
      labels_.line(output, line);
    }
  }

  // The index of a column's first token: above each, each fifth or each tenth, as the cells have room.
  Text ruler() const {
    const size_t step = layout_.cell >= 3 ? 1 : layout_.cell == 2 ? 5 : 10;
    std::string marks;
    for (size_t column = 0; column < layout_.bins; column += step) {
      const std::string number = fmt::format("{}", map_.places[column * layout_.pool]);
      const size_t place = column * layout_.cell + (layout_.cell >= 4 ? 1 : 0);
      if (column == 0 || place > marks.size()) marks += std::string(place - marks.size(), ' ') + number;
    }
    return pen_.write(marks, Ink::dim);
  }

  // The first token of a row, with its number where the columns are numbered.
  Text row_name(size_t row) const {
    const size_t first = row * layout_.pool;
    if (layout_.names != ColumnNames::ruler)
      return labels_.token(map_.tokens[first], Ink::query, layout_.label).right_aligned(layout_.label);
    const size_t digits = fmt::formatted_size("{}", map_.places.back());
    return (pen_.write(fmt::format("{:>{}} ", map_.places[first], digits), Ink::dim) +
            labels_.token(map_.tokens[first], Ink::query, layout_.label - digits - 1))
        .padded(layout_.label);
  }

  Text cells(size_t row) const {
    Text line;
    for (size_t column = 0; column < layout_.bins; ++column) {
      if (layout_.half_blocks)
        line += half_blocks(row, column);
      else
        line += pen_.colored() ? colored_cell(weight(row, column)) : plain_cell(weight(row, column));
    }
    return line;
  }

  Text half_blocks(size_t row, size_t column) const {
    const auto color = [&](size_t r) { return scale_color(scale_place(weight(r, column)), pen_.style().dark); };
    const bool both = row + 1 < layout_.bins;
    return pen_.paint("\xE2\x96\x80", color(row), both ? std::optional(color(row + 1)) : std::nullopt);
  }

  std::string number(float value) const {
    const long percent = std::lround(100.0 * (std::isfinite(value) ? value : 0));
    if (percent > 0) return fmt::format("{}", percent);
    return pen_.colored() ? "" : pen_.style().ascii ? "." : "\xC2\xB7";
  }

  Text colored_cell(float value) const {
    const size_t cell = layout_.cell;
    if (!layout_.numbers) return pen_.cell(std::string(cell, ' '), value);
    const std::string digits = number(value);
    const size_t right = cell >= 5 ? (cell - 3) / 2 : cell == 4 ? 1 : 0;
    return pen_.cell(fmt::format("{:>{}}{:{}}", digits, cell - right, "", right), value);
  }

  // The shade, doubled where there is room, and the number behind it.
  Text plain_cell(float value) const {
    const size_t cell = layout_.cell;
    const std::string_view shade = pen_.shade(value);
    std::string shades;
    const size_t count = !layout_.numbers ? cell : cell > 5 ? 2 : cell == 5 ? 1 : 0;
    for (size_t i = 0; i < count; ++i) shades += shade;
    if (!layout_.numbers) return Text(shades);
    const Text digits = Text(number(value)).right_aligned(cell == 4 ? 4 : 3);
    return centred(Text(shades) + digits, cell);
  }

  const AttentionMap& map_;
  const Labels& labels_;
  const Pen& pen_;
  MapLayout layout_;
  std::vector<float> weights_;
};

void draw_legend(std::string& output, const Labels& labels) {
  const Pen& pen = labels.pen();
  Text line = fill_in(labels.word("legend"), {{"row", pen.write(labels.word("legend_row"), Ink::query)},
                                              {"columns", pen.write(labels.word("legend_columns"), Ink::key)}});
  line += Text("   ");
  if (pen.colored()) {
    for (const int percent : {0, 1, 5, 10, 25, 50, 75, 100})
      line += pen.cell(centred(Text(fmt::format("{}", percent)), 4).str(), percent / 100.0);
  } else {
    // Each shade with the least weight that it stands for.
    const size_t levels = pen.style().ascii ? 10 : 5;
    for (size_t level = 1; level < levels; level += pen.style().ascii ? 2 : 1) {
      const double place = static_cast<double>(level) / static_cast<double>(levels);
      line += Text(fmt::format("{} {:.0f}  ", pen.shade(place * place + 1e-9), 100 * place * place));
    }
  }
  output += '\n';
  labels.line(output, line);
}

// Rows to list: all, or of a long text those with the strongest weight, in the order of the text.
std::vector<size_t> rows_to_list(const AttentionMap& map) {
  const size_t n = map.tokens.size();
  std::vector<size_t> rows;
  for (size_t row = 0; row < n; ++row) rows.push_back(row);
  if (n <= kMostRowsListed) return rows;
  std::vector<float> key_of_row(n, 0.0f);
  for_each_row(*map.weights, [&](size_t row, std::span<const float> weights) {
    if (map.tokens[row].special) return;
    for (size_t key = 0; key < n; ++key)
      if (key != row && !map.tokens[key].special) key_of_row[row] = std::max(key_of_row[row], weights[key]);
  });
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return key_of_row[a] > key_of_row[b]; });
  rows.resize(kFewRowsListed);
  std::sort(rows.begin(), rows.end());
  return rows;
}

void draw_rows(std::string& output, const AttentionMap& map, const MapOptions& options, const Labels& labels) {
  const size_t n = map.tokens.size();
  const std::vector<size_t> rows = rows_to_list(map);
  const Pen& pen = labels.pen();
  labels.heading(output, labels.word("rows_title"));
  size_t widest_name = 0, widest_keys = 0;
  std::vector<Text> names, keys;
  std::vector<std::vector<float>> weights;
  for (const size_t row : rows) {
    weights.push_back(map.row(row));
    names.push_back(labels.leading_token(map.tokens[row], map.places[row], map.places.back() + 1));
    keys.push_back(labels.strongest_of_row(weights.back(), map.tokens, options.top));
    widest_name = std::max(widest_name, names.back().width());
    widest_keys = std::max(widest_keys, keys.back().width());
  }
  const size_t room = labels.width() - std::min(labels.width(), widest_name + 5 + kBarColumns + 4);
  widest_keys = std::min(widest_keys, room);
  for (size_t i = 0; i < rows.size(); ++i) {
    labels.line(output, names[i].padded(widest_name) + Text(" ") + pen.write(pen.arrow(), Ink::dim) + Text(" ") +
                            keys[i].cut(widest_keys, pen.style()).padded(widest_keys) + Text("  ") +
                            labels.bar_of_row(weights[i], options.top, kBarColumns));
  }
  if (rows.size() < n) {
    const Text count(fmt::format("{}", n - rows.size()));
    labels.more(output, fill_in(labels.word("more_tokens"), {{"count", count}}));
  }
}

}  // namespace

std::string draw_map(const AttentionMap& map, const MapOptions& options, const Style& style) {
  const Labels labels(style);
  if (map.from) return draw_map_row(map, options, labels);
  std::string output;
  labels.title(output, fill_in(labels.word("map_title"), {{"model", labels.name(map.model)},
                                                          {"head", labels.head(map.layer, map.head)},
                                                          {"kind", labels.kind_text(map.kind)}}));
  labels.title(output, labels.sentence(map.tokens));
  output += '\n';
  const MapPicture picture(map, labels);
  picture.draw(output);
  draw_legend(output, labels);
  if (picture.pool() > 1) {
    const Text size(fmt::format("{}", picture.pool()));
    labels.note(output, fill_in(labels.word("pooled"), {{"size", size}, {"times", Text(labels.pen().times())}}).str());
  }
  draw_rows(output, map, options, labels);
  labels.notes(output, map.hidden_mass, options);
  return output;
}

}  // namespace clearhead::views
