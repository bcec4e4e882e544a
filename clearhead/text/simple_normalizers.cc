// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/simple_normalizers.h"

#include <algorithm>
#include <iterator>

#include "clearhead/text/rewriter.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

Span whole(const AlignedText& text) { return {0, static_cast<uint32_t>(text.bytes().size())}; }

// Rewrites code point by code point: for each, change gives what it becomes; nothing: it is deleted.
template <class Change>
void rewrite_each(const AlignedText& source, AlignedText& result, const Change& change) {
  const std::string_view text = source.bytes();
  Rewriter rewriter(source, whole(source), result);
  for (uint32_t at = 0; at < text.size();) {
    const ValidCodePoint here = code_point_at(text, at);
    const ShortCodePoints becomes = change(here.value);
    const bool same = becomes.size() == 1 && becomes[0] == here.value;
    if (!same) rewriter.keep_to(at);
    at += static_cast<uint32_t>(here.length);
    if (same) continue;
    if (becomes.size() == 0) rewriter.skip_to(at);
    for (size_t i = 0; i < becomes.size(); ++i) rewriter.put({becomes[i], i == 0 ? 0 : 1});
  }
  rewriter.keep_to(static_cast<uint32_t>(text.size()));
}

ShortCodePoints one(char32_t c) {
  ShortCodePoints result;
  result.push_back(c);
  return result;
}

ShortCodePoints cleaned_for_translation(char32_t c) {
  const bool deleted =
      (c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
  if (deleted) return {};
  static constexpr char32_t kSpaces[] = {0x9,    0xa,    0xc,    0xd,    0x1680, 0x200b, 0x200c, 0x200d,
                                         0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};
  return one(std::ranges::find(kSpaces, c) != std::end(kSpaces) ? U' ' : c);
}

}  // namespace

void NormalizerSequence::normalize(const AlignedText& source, AlignedText& result) const {
  if (steps_.empty()) return void(result.keep(source.bytes(), source, 0));
  AlignedText before = source.empty_like(), after = source.empty_like();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool last = i + 1 == steps_.size();
    after.clear();
    steps_[i]->normalize(i == 0 ? source : before, last ? result : after);
    std::swap(before, after);
  }
}

void Replace::normalize(const AlignedText& source, AlignedText& result) const {
  Rewriter rewriter(source, whole(source), result);
  for_each_part(*pattern_, source.bytes(), whole(source), [&](Span part, bool is_match) {
    if (!is_match) return rewriter.keep_to(part.end);
    rewriter.skip_to(part.end);
    rewriter.insert(content_);
  });
}

void Prepend::normalize(const AlignedText& source, AlignedText& result) const {
  const std::string_view text = source.bytes();
  if (text.empty()) return;
  result.replace(prefix_, source.original({0, static_cast<uint32_t>(code_point_at(text, 0).length)}));
  result.keep(text, source, 0);
}

void Strip::normalize(const AlignedText& source, AlignedText& result) const {
  const std::string_view text = source.bytes();
  size_t begin = 0, end = text.size();
  while (left_ && begin < end && is_white_space(code_point_at(text, begin).value)) {
    begin += code_point_at(text, begin).length;
  }
  while (right_ && end > begin && is_white_space(code_point_before(text, end).value)) {
    end -= code_point_before(text, end).length;
  }
  if (begin < end) result.keep(text.substr(begin, end - begin), source, static_cast<uint32_t>(begin));
}

void StripAccents::normalize(const AlignedText& source, AlignedText& result) const {
  rewrite_each(source, result, [](char32_t c) { return is_mark(c) ? ShortCodePoints() : one(c); });
}

void Lowercase::normalize(const AlignedText& source, AlignedText& result) const {
  rewrite_each(source, result, [](char32_t c) { return lower_case_of(c); });
}

void Nmt::normalize(const AlignedText& source, AlignedText& result) const {
  rewrite_each(source, result, cleaned_for_translation);
}

}  // namespace clearhead::text
