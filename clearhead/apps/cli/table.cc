// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/table.h"

#include <algorithm>

#include "clearhead/views/wrap.h"

namespace clearhead::apps {
namespace {

constexpr size_t kGap = 2;          // columns between two cells
constexpr size_t kMoreIndent = 4;   // of what follows a leading cell
constexpr size_t kLeastWidth = 16;  // for words, whatever stands before them

std::string spaces(size_t count) { return std::string(count, ' '); }

std::string without_spaces_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string wrapped(std::string_view first, std::string_view text, const views::Style& style) {
  const size_t begin = views::display_width(first);
  const size_t columns = std::max(style.width, begin + kLeastWidth) - begin;
  std::string lines;
  for (const std::string& part : views::wrap(text, columns, style)) {
    lines += without_spaces_at_end((lines.empty() ? std::string(first) : spaces(begin)) + part) + "\n";
  }
  return lines;
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  return names;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool spans = i + 1 == cells.size() && cells.size() < columns_.size();
    const size_t used = views::display_width(cells[i]);
    const std::string room = spaces(spans || used > widths[i] ? 0 : widths[i] - used);
    if (i > 0) line += spaces(kGap);
    line += columns_[i].right && !spans ? room + cells[i] : cells[i] + room;
  }
  return without_spaces_at_end(std::move(line));
}

std::string Table::as_lines(const Row& row, const views::Style& style, size_t indent) const {
  std::string more;
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const std::string& cell = row.cells[i];
    const size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
    if (i == lead_ || begin == cell.size()) continue;
    const bool spans = i + 1 == row.cells.size() && row.cells.size() < columns_.size();
    if (!more.empty()) more += ", ";
    if (!spans && !columns_[i].name.empty()) more += columns_[i].name + " ";
    more += cell.substr(begin);
  }
  const size_t lead = std::min(lead_, row.cells.size() - 1);
  std::string lines = wrapped(spaces(indent), row.cells[lead], style);
  if (!more.empty()) lines += wrapped(spaces(indent + kMoreIndent), more, style);
  return lines;
}

std::string Table::draw(const views::Style& style, size_t indent) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(std::max(column.width, views::display_width(column.name)));
  for (const Row& row : rows_) {
    const bool whole = row.cells.size() == columns_.size();
    for (size_t i = 0; i < row.cells.size() - (whole ? 0 : 1); ++i) {
      widths[i] = std::max(widths[i], views::display_width(row.cells[i]));
    }
  }
  const bool fits = std::ranges::all_of(
      rows_, [&](const Row& row) { return indent + views::display_width(line(row.cells, widths)) <= style.width; });
  std::string page;
  const std::string title = line(names(), widths);
  if (fits && !title.empty()) page += spaces(indent) + title + "\n";
  for (const Row& row : rows_) {
    page += fits ? spaces(indent) + line(row.cells, widths) + "\n" : as_lines(row, style, indent);
    if (!row.remark.empty()) page += wrapped(spaces(indent + kMoreIndent), row.remark, style);
  }
  return page;
}

}  // namespace clearhead::apps
