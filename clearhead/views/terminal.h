// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::views {

enum class Colors { none, ansi256, truecolor };
enum class Language { en, zh };

// How a picture for people is drawn.
struct Style {
  Colors colors = Colors::none;
  bool ascii = false;  // no character above U+007F of our own (English only); tokens that have one are escaped
  size_t width = 80;   // columns
  bool dark = true;    // background of the terminal
  Language language = Language::en;
};

// Columns that a text takes on a terminal: 2 for wide characters (Chinese, emoji), 0 for combining marks, joined emoji
// and variation selectors as one. Control characters and invalid UTF-8 count as what printable() makes of them.
size_t display_width(std::string_view text);

// The text with control characters, bidirectional controls and invalid UTF-8 replaced by visible stand-ins, so that a
// token can neither move the cursor nor colour the screen; with style.ascii every other character above U+007F as
// \u{XXXX}.
std::string printable(std::string_view text, const Style& style);

// What a reader takes for one character, and the columns it takes.
struct Cluster {
  std::string_view text;  // points into the text that was cut
  size_t width = 0;       // columns
};

// The extended grapheme clusters of a text that printable() returned.
// Source: Unicode Standard Annex 29 (boundaries), Annex 11 (widths).
std::vector<Cluster> clusters(std::string_view printable_text);

// Cut to at most columns (with an ellipsis) or filled up with spaces, exactly columns wide. The text is printable.
std::string fit(std::string_view text, size_t columns, const Style& style);

}  // namespace clearhead::views
