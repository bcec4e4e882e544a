// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/decoder.h"

#include <array>
#include <utility>

namespace clearhead::text {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Applied to one piece with the space before it, never across pieces.
void clean_up(std::string& piece) {
  using Rule = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Rule, 11> kRules = {{{" .", "."},
                                                   {" ?", "?"},
                                                   {" !", "!"},
                                                   {" ,", ","},
                                                   {" ' ", "'"},
                                                   {" n't", "n't"},
                                                   {" 'm", "'m"},
                                                   {" do not", " don't"},
                                                   {" 's", "'s"},
                                                   {" 've", "'ve"},
                                                   {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(piece, from, to);
}

}  // namespace

std::string SpaceDecoder::decode(std::span<const std::string_view> pieces) const {
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) text += ' ';
    text += pieces[i];
  }
  return text;
}

std::string WordPieceDecoder::decode(std::span<const std::string_view> pieces) const {
  std::string text, piece;
  for (size_t i = 0; i < pieces.size(); ++i) {
    piece = pieces[i];
    if (i > 0 && piece.starts_with(prefix_)) {
      piece.erase(0, prefix_.size());
    } else if (i > 0) {
      piece.insert(0, 1, ' ');
    }
    if (cleanup_) clean_up(piece);
    text += piece;
  }
  return text;
}

}  // namespace clearhead::text
