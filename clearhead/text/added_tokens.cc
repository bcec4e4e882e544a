// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/added_tokens.h"

#include <algorithm>

#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

bool has(char32_t c, Property property) { return (property_table()[c] & property) != 0; }

bool stands_alone(std::string_view text, Span span) {
  const bool word_before = span.begin > 0 && has(code_point_before(text, span.begin).value, kWord);
  const bool word_after = span.end < text.size() && has(code_point_at(text, span.end).value, kWord);
  return !word_before && !word_after;
}

bool is_space_for(const AddedToken& token, char32_t c) {
  return has(c, kWhiteSpace) && (c < 0x80 || !token.ascii_space);
}

uint32_t without_space_before(std::string_view text, uint32_t end, uint32_t begin, const AddedToken& token) {
  while (end > begin) {
    const ValidCodePoint before = code_point_before(text, end);
    if (!is_space_for(token, before.value)) break;
    end -= static_cast<uint32_t>(before.length);
  }
  return end;
}

uint32_t without_space_after(std::string_view text, uint32_t begin, const AddedToken& token) {
  while (begin < text.size()) {
    const ValidCodePoint here = code_point_at(text, begin);
    if (!is_space_for(token, here.value)) break;
    begin += static_cast<uint32_t>(here.length);
  }
  return begin;
}

}  // namespace

bool AddedTokenFinder::add(const AddedToken& token, std::string_view pattern) {
  if (pattern.size() > Trie::kMaxStringBytes) return false;
  if (pattern.empty() || !trie_.add(pattern, static_cast<uint32_t>(tokens_.size()))) return true;
  only_start_ = tokens_.empty() || only_start_ == pattern[0] ? std::optional(pattern[0]) : std::nullopt;
  starts_[static_cast<unsigned char>(pattern[0])] = true;
  tokens_.push_back(token);
  return true;
}

std::optional<AddedTokenFinder::Found> AddedTokenFinder::find(std::string_view text, size_t from) const {
  const auto starts = [this](char byte) { return starts_[static_cast<unsigned char>(byte)]; };
  while (from < text.size()) {
    if (only_start_) {
      from = text.find(*only_start_, from);
      if (from == std::string_view::npos) break;
    } else {
      from = std::find_if(text.begin() + from, text.end(), starts) - text.begin();
      if (from == text.size()) break;
    }
    if (const auto match = trie_.longest(text.substr(from))) {
      return Found{match->value, {static_cast<uint32_t>(from), static_cast<uint32_t>(from + match->length)}};
    }
    ++from;
  }
  return std::nullopt;
}

std::vector<Stretch> AddedTokenFinder::cut(std::string_view text) const {
  std::vector<Stretch> stretches;
  uint32_t done = 0;
  for (size_t from = 0; !tokens_.empty();) {
    const std::optional<Found> found = find(text, from);
    if (!found) break;
    from = found->span.end;
    const AddedToken& token = tokens_[found->token];
    Span span = found->span;
    if (token.single_word && !stands_alone(text, span)) continue;
    if (token.lstrip) span.begin = done < span.begin ? without_space_before(text, span.begin, done, token) : done;
    if (token.rstrip) span.end = without_space_after(text, span.end, token);
    if (span.begin >= span.end) continue;
    if (done < span.begin) stretches.push_back({{done, span.begin}, std::nullopt});
    stretches.push_back({span, token.id});
    done = span.end;
  }
  if (done < text.size()) stretches.push_back({{done, static_cast<uint32_t>(text.size())}, std::nullopt});
  return stretches;
}

}  // namespace clearhead::text
