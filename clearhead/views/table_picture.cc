// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "clearhead/views/attention_map.h"
#include "clearhead/views/labels.h"

namespace clearhead::views {
namespace {

struct Column {
  std::string_view name;  // of its heading among the words
  bool right = false;     // aligned so
  size_t gap = 2;         // columns before it
};

// Cells of equal width per column.
class Table {
 public:
  Table(const Labels& labels, std::vector<Column> columns) : columns_(std::move(columns)), widths_(columns_.size(), 0) {
    std::vector<Text> head;
    for (const Column& column : columns_)
      head.push_back(labels.pen().write(labels.word(fmt::format("column.{}", column.name)), Ink::title));
    add(std::move(head));
  }

  void add(std::vector<Text> row) {
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].width());
    rows_.push_back(std::move(row));
  }

  size_t size() const { return rows_.size(); }

  // Last columns that have no room are left out, not cut. Returns their names.
  std::vector<std::string_view> leave_out_beyond(size_t width) {
    std::vector<std::string_view> left_out;
    while (line(0).width() > width && columns_.size() > 1) {
      left_out.insert(left_out.begin(), columns_.back().name);
      columns_.pop_back(), widths_.pop_back();
    }
    return left_out;
  }

  // Row 0 are the headings.
  Text line(size_t row) const {
    Text line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) line += Text(std::string(columns_[i].gap, ' '));
      const Text& cell = rows_[row][i];
      line += columns_[i].right ? cell.right_aligned(widths_[i]) : cell.padded(widths_[i]);
    }
    return line;
  }

 private:
  std::vector<Column> columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<Text>> rows_;
};

// A mean weight in percent, on its colour.
Text share(const Pen& pen, const std::optional<double>& value) {
  if (!value) return pen.write(pen.style().ascii ? "-" : "\xE2\x80\x93", Ink::dim);
  const std::string number = fmt::format(" {:3.0f}  ", 100 * *value);
  return pen.colored() ? pen.cell(number, *value) : Text(number);
}

Text kind_cell(const Labels& labels, HeadKind kind) {
  const std::string_view name = labels.word(fmt::format("kind_short.{}", name_of(kind)));
  return labels.pen().write(fmt::format("{} {}", labels.pen().glyph(kind), name), kind);
}

Text figure(const Pen& pen, const std::optional<double>& value) {
  return value ? Text(fmt::format("{:.2f}", *value)) : pen.write(pen.style().ascii ? "-" : "\xE2\x80\x93", Ink::dim);
}

}  // namespace

std::string draw_head_table(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const Style& style) {
  const Labels labels(style);
  const Pen& pen = labels.pen();
  Table table(labels, {{"layer", true},
                       {"head", true, 1},
                       {"kind"},
                       {"entropy", true, 1},
                       {"distance", true, 1},
                       {"strongest", true, 1},
                       {"previous", true, 0},
                       {"next", true, 0},
                       {"self", true, 0},
                       {"first", true, 0},
                       {"special", true, 0},
                       {"link"}});
  for (const HeadSummary& head : heads) {
    const bool content = head.kind == HeadKind::content;
    const auto number = [&](size_t value) {
      return pen.write(fmt::format("{}", value), content ? Ink::strong : Ink::plain);
    };
    table.add({number(head.layer), number(head.head), kind_cell(labels, head.kind), figure(pen, head.entropy),
               figure(pen, head.mean_distance), share(pen, head.strongest), share(pen, head.previous),
               share(pen, head.next), share(pen, head.self), share(pen, head.first), share(pen, head.special),
               head.links.empty() ? Text() : labels.link(head.links.front(), trace.info().tokens)});
  }
  const std::vector<std::string_view> left_out = table.leave_out_beyond(labels.width() - 2);
  std::string output;
  labels.line(output, table.line(0), 1);
  for (size_t i = 0; i < heads.size(); ++i) {
    if (i == 0 || heads[i].layer != heads[i - 1].layer) labels.line(output, pen.line(labels.width() - 2), 1);
    labels.line(output, table.line(i + 1), 1);
  }
  output += '\n';
  labels.note(output, std::string(labels.word("table_legend")));
  std::string names;
  for (const std::string_view name : left_out) {
    names +=
        fmt::format("{}{}", names.empty() ? "" : labels.word("comma"), labels.word(fmt::format("column.{}", name)));
  }
  if (!names.empty()) labels.note(output, fill_in(labels.word("left_out"), {{"columns", Text(names)}}).str());
  return output;
}

std::string draw_tokens(const std::vector<capture::TraceToken>& tokens, const Style& style) {
  const Labels labels(style);
  const Pen& pen = labels.pen();
  std::string output;
  labels.title(output, labels.token_count(tokens.size()));
  labels.title(output, labels.sentence(tokens));
  output += '\n';
  // The two widest columns share what the others leave.
  const size_t most = std::clamp<size_t>((labels.width() - 30) / 2, 5, 32);
  Table table(labels, {{"index", true}, {"text"}, {"piece"}, {"id", true}, {"bytes", true}});
  for (size_t i = 0; i < tokens.size(); ++i) {
    const capture::TraceToken& token = tokens[i];
    const std::string piece = printable(token.piece, style);
    table.add({pen.write(fmt::format("{}", i), Ink::dim), labels.token(token, Ink::query, most),
               pen.write(display_width(piece) > most ? fit(piece, most, style) : piece,
                         token.special ? Ink::special : Ink::plain),
               Text(fmt::format("{}", token.id)),
               token.special ? pen.write(labels.word("special"), Ink::special)
                             : pen.write(fmt::format("{}..{}", token.begin, token.end), Ink::dim)});
  }
  labels.line(output, table.line(0), 1);
  labels.line(output, pen.line(std::min(labels.width() - 2, table.line(0).width())), 1);
  for (size_t i = 1; i < table.size(); ++i) labels.line(output, table.line(i), 1);
  return output;
}

}  // namespace clearhead::views
