// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/wrap.h"

namespace clearhead::views {
namespace {

// A piece that stays on one line, and whether a space stood before it.
struct Piece {
  std::string text;
  size_t width = 0;
  bool after_space = false;
};

// Marks that may not begin a line: they stay with the character before them.
bool clings(std::string_view cluster) {
  for (const char* mark :
       {"\uFF0C", "\u3002", "\u3001", "\uFF1B", "\uFF1A", "\uFF1F", "\uFF01", "\uFF09", "\u201D", ",", ".", ")"}) {
    if (cluster == mark) return true;
  }
  return false;
}

std::vector<Piece> pieces_of(std::string_view shown) {
  std::vector<Piece> pieces;
  bool space = false, open = false;  // open: the last piece may grow
  for (const Cluster& cluster : clusters(shown)) {
    if (cluster.text == " ") {
      space = true;
      open = false;
      continue;
    }
    const bool grow = !pieces.empty() && !space && (clings(cluster.text) || (open && cluster.width < 2));
    if (!grow) pieces.push_back({"", 0, space});
    pieces.back().text += cluster.text;
    pieces.back().width += cluster.width;
    open = cluster.width < 2;
    space = false;
  }
  return pieces;
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, size_t columns, const Style& style) {
  const std::string shown = printable(text, style);
  std::vector<std::string> lines(1);
  size_t used = 0;
  for (const Piece& piece : pieces_of(shown)) {
    const size_t space = piece.after_space && used > 0 ? 1 : 0;
    if (used > 0 && used + space + piece.width > columns) {
      lines.emplace_back();
      used = 0;
    } else if (space > 0) {
      lines.back() += ' ';
      ++used;
    }
    for (const Cluster& cluster : clusters(piece.text)) {
      if (used > 0 && used + cluster.width > columns) {
        lines.emplace_back();
        used = 0;
      }
      lines.back() += cluster.text;
      used += cluster.width;
    }
  }
  return lines;
}

}  // namespace clearhead::views
