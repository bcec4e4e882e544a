// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/views/terminal.h"

namespace clearhead::apps {

// Lines of at most style.width columns: a text cut at its spaces, the first line after `first`, the others indented
// by as many columns.
std::string wrapped(std::string_view first, std::string_view text, const views::Style& style);

// A table of plain cells for people. Where its lines do not fit the width, each row becomes a few lines instead: its
// leading cell, then the others behind the names of their columns.
class Table {
 public:
  struct Column {
    std::string name;  // may be empty
    size_t width = 0;  // at least
    bool right = false;
  };

  // lead: the column whose cell says what a row is about.
  explicit Table(std::vector<Column> columns, size_t lead = 0) : columns_(std::move(columns)), lead_(lead) {}

  // A cell for each column; of a shorter row, the last cell takes the columns that are left. Cells are printable.
  void add(std::vector<std::string> cells) { rows_.push_back({std::move(cells), ""}); }
  // A remark under the last row, wrapped.
  void remark(std::string text) { rows_.back().remark = std::move(text); }

  // With the columns' names on top, if any has one.
  std::string draw(const views::Style& style, size_t indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string remark;
  };

  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;
  std::string as_lines(const Row& row, const views::Style& style, size_t indent) const;
  std::vector<std::string> names() const;

  std::vector<Column> columns_;
  size_t lead_;
  std::vector<Row> rows_;
};

}  // namespace clearhead::apps
