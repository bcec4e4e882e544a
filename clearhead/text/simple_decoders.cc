// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/simple_decoders.h"

#include <charconv>
#include <optional>

#include "clearhead/base/utf8.h"

namespace clearhead::text {
namespace {

// The byte of a piece <0x00> to <0xFF>.
std::optional<char> byte_of(std::string_view piece) {
  constexpr size_t kBytes = 6;
  if (piece.size() != kBytes || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  unsigned value = 0;
  const char* end = piece.data() + kBytes - 1;
  const auto [rest, error] = std::from_chars(piece.data() + 3, end, value, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return static_cast<char>(value);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

void ByteFallbackDecoder::rewrite(std::vector<std::string>& pieces) const {
  std::vector<std::string> result;
  std::string bytes;
  const auto add_bytes = [&] {
    if (bytes.empty()) return;
    if (base::first_invalid_utf8(bytes)) {
      result.insert(result.end(), bytes.size(), "\xef\xbf\xbd");
    } else {
      result.push_back(bytes);
    }
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of(piece)) {
      bytes += *byte;
    } else {
      add_bytes();
      result.push_back(std::move(piece));
    }
  }
  add_bytes();
  pieces.swap(result);
}

void FuseDecoder::rewrite(std::vector<std::string>& pieces) const {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  pieces = {std::move(all)};
}

void ReplaceDecoder::rewrite(std::vector<std::string>& pieces) const {
  for (std::string& piece : pieces) {
    std::string result;
    for_each_part(*pattern_, piece, {0, static_cast<uint32_t>(piece.size())}, [&](Span part, bool is_match) {
      result += is_match ? std::string_view(content_) : std::string_view(piece).substr(part.begin, part.size());
    });
    piece = std::move(result);
  }
}

void StripDecoder::rewrite(std::vector<std::string>& pieces) const {
  for (std::string& piece : pieces) {
    size_t begin = 0, end = piece.size();
    for (size_t i = 0; i < start_ && piece.compare(begin, character_.size(), character_) == 0; ++i) {
      begin += character_.size();
    }
    for (size_t i = 0; i < stop_ && std::string_view(piece).substr(begin, end - begin).ends_with(character_); ++i) {
      end -= character_.size();
    }
    piece = piece.substr(begin, end - begin);
  }
}

void BpeDecoder::rewrite(std::vector<std::string>& pieces) const {
  for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], suffix_, i + 1 == pieces.size() ? "" : " ");
}

}  // namespace clearhead::text
