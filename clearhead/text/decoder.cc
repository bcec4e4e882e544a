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

std::string Decoder::decode(std::span<const std::string_view> pieces) const {
  std::vector<std::string> parts(pieces.begin(), pieces.end());
  rewrite(parts);
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

void DecoderSequence::rewrite(std::vector<std::string>& pieces) const {
  for (const auto& step : steps_) step->rewrite(pieces);
}

void SpaceDecoder::rewrite(std::vector<std::string>& pieces) const {
  for (size_t i = 1; i < pieces.size(); ++i) pieces[i].insert(0, 1, ' ');
}

void WordPieceDecoder::rewrite(std::vector<std::string>& pieces) const {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && pieces[i].starts_with(prefix_)) {
      pieces[i].erase(0, prefix_.size());
    } else if (i > 0) {
      pieces[i].insert(0, 1, ' ');
    }
    if (cleanup_) clean_up(pieces[i]);
  }
}

}  // namespace clearhead::text
