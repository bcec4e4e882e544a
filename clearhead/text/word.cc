// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word.h"

#include "clearhead/base/utf8.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

size_t count_code_points(std::string_view text, Property property, size_t& all) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++all) {
    const base::CodePoint here = base::decode_utf8(text.substr(at));
    count += (property_table()[here.value] & property) != 0;
    at += here.length;
  }
  return count;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> word_groups(const Encoding& encoding) {
  std::vector<std::pair<size_t, size_t>> groups;
  for (size_t i = 0; i < encoding.tokens.size(); ++i) {
    if (i > 0 && encoding.tokens[i].continues_word) {
      groups.back().second = i + 1;
    } else {
      groups.emplace_back(i, i + 1);
    }
  }
  return groups;
}

bool is_punctuation(std::string_view text) {
  size_t all = 0;
  const size_t marks = count_code_points(text, kPunctuation, all);
  return all > 0 && marks == all;
}

bool has_han(std::string_view text) {
  size_t all = 0;
  return count_code_points(text, kHan, all) > 0;
}

bool joins_word(std::string_view text, size_t at) {
  unsigned kinds = 0;
  if (at > 0) kinds |= property_table()[code_point_before(text, at).value];
  if (at < text.size()) kinds |= property_table()[code_point_at(text, at).value];
  return (kinds & (kPunctuation | kHan)) == 0;
}

}  // namespace clearhead::text
