// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/pen.h"
#include "clearhead/views/words.h"

namespace clearhead::views {

// What all pictures share: the pen, the words and how tokens, heads and weights are named with them.
class Labels {
 public:
  explicit Labels(const Style& style);

  const Pen& pen() const { return pen_; }
  std::string_view word(std::string_view name) const { return words_[name]; }
  // Columns that a picture may take: the style's width within reason.
  size_t width() const { return width_; }

  // The token as a label: printable, white space at its edges made visible, never empty, at most columns wide.
  std::string token(const capture::TraceToken& token, size_t columns = 24) const;
  Text token(const capture::TraceToken& token, Ink ink, size_t columns = 24) const;
  // The token that a line speaks of, in front of it; with its place in the text where that is too long (so many tokens)
  // to count by eye.
  Text leading_token(const capture::TraceToken& token, size_t place, size_t seq_len) const;
  // "89 %"; a weight that rounds to 0 without being 0 is "<1 %".
  std::string percent(double weight) const;
  // "1 token", "8 tokens"; ink: of the number.
  Text token_count(size_t count, Ink ink = Ink::plain) const;
  // "layer 5 head 11".
  Text head(size_t layer, size_t head) const;
  std::string_view kind(HeadKind kind) const;
  Text kind_text(HeadKind kind) const;  // in its colour, its glyph before it
  Text name(std::string_view model) const;
  // "layer 5 head 11: sat looks at cat, 89 %".
  Text looks(const HeadSummary& summary, const Link& link, const std::vector<capture::TraceToken>& tokens) const;
  // "sat -> cat 89 %".
  Text link(const Link& link, const std::vector<capture::TraceToken>& tokens) const;
  // "cat 89 %, mat 3 %, rest 8 %": the top weights of a row in the strengths of stacked_bar.
  Text strongest_of_row(std::span<const float> row, const std::vector<capture::TraceToken>& tokens, size_t top) const;
  // Its bar.
  Text bar_of_row(std::span<const float> row, size_t top, size_t columns) const;
  // All tokens in one line, special ones set off.
  Text sentence(const std::vector<capture::TraceToken>& tokens) const;

  // A line with a mark before it; a heading.
  void title(std::string& output, const Text& line) const;
  void heading(std::string& output, std::string_view text) const;
  // What a list leaves out.
  void more(std::string& output, const Text& text) const;
  // A remark under a picture, wrapped; those that the options call for.
  void note(std::string& output, const std::string& text) const;
  void notes(std::string& output, double hidden_mass, const MapOptions& options) const;
  // One line, indented and cut to the width.
  void line(std::string& output, const Text& text, size_t indent = 2) const;

 private:
  Pen pen_;
  const Words& words_;
  size_t width_;
};

// Indices of the largest weights of a row, largest first, ties to the lower key; zeros are left out.
std::vector<size_t> largest_of_row(std::span<const float> row, size_t count);

}  // namespace clearhead::views
