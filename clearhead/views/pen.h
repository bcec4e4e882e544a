// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clearhead/views/color.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/ink_text.h"
#include "clearhead/views/terminal.h"

namespace clearhead::views {

// What a piece of text is in a picture; the colours follow from it.
enum class Ink { plain, strong, title, dim, query, key, number, rule, special };

// Puts colour around text as the style allows; without colours it returns the text as it is. Text must be printable.
class Pen {
 public:
  explicit Pen(const Style& style) : style_(style) {}

  const Style& style() const { return style_; }
  bool colored() const { return style_.colors != Colors::none; }

  Text write(std::string_view text, Ink ink) const;
  // In the colour of a kind of head.
  Text write(std::string_view text, HeadKind kind) const;
  // In any colours; an absent one is left as it is.
  Text paint(std::string_view text, std::optional<Rgb> foreground, std::optional<Rgb> background,
             bool bold = false) const;
  // On the colour of a weight (0 to 1), in black or white, whichever is readable.
  Text cell(std::string_view text, double weight) const;

  // One character that grows darker with the weight, for pictures without colour.
  std::string_view shade(double weight) const;

  // A bar of columns whose filled part is the fraction, to half a column where characters allow.
  Text bar(double fraction, size_t columns) const;
  // One row's weights as one bar: a part per weight, each in its own strength, then a track for the rest of the row.
  Text stacked_bar(std::span<const float> weights, size_t columns) const;
  // Text in the strength that stacked_bar gives to part number index.
  Text in_strength(std::string_view text, size_t index) const;

  // A glyph of one column for a kind of head, different for each kind also without colour.
  std::string_view glyph(HeadKind kind) const;
  // A horizontal line.
  Text line(size_t columns) const;

  std::string_view arrow() const { return style_.ascii ? "->" : "\xE2\x86\x92"; }
  std::string_view dot() const { return style_.ascii ? "|" : "\xC2\xB7"; }
  std::string_view times() const { return style_.ascii ? "x" : "\xC3\x97"; }
  std::string_view ellipsis() const { return style_.ascii ? "..." : "\xE2\x80\xA6"; }

 private:
  Style style_;
};

}  // namespace clearhead::views
