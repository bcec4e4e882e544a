// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/unicode.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "clearhead/text/unicode_tables.h"

namespace clearhead::text {
namespace {

// Hangul syllables decompose by arithmetic. Source: The Unicode Standard, section 3.12.
constexpr char32_t kSyllableBase = 0xac00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTrailBase = 0x11a7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307;

// The entry of a sorted table that covers c, by its first and last code point, or nullptr.
template <typename Range>
const Range* find_range(std::span<const Range> table, char32_t c) {
  const auto after = std::ranges::upper_bound(table, c, {}, &Range::first);
  if (after == table.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return c <= range.last ? &range : nullptr;
}

bool is_syllable(char32_t c) { return c >= kSyllableBase && c < kSyllableBase + kSyllableCount; }
bool is_vowel(char32_t c) { return c >= kVowelBase && c < kVowelBase + kVowelCount; }
bool is_trail(char32_t c) { return c > kTrailBase && c < kTrailBase + kTrailCount; }

// [0x110000]
std::vector<uint8_t> all_properties() {
  std::vector<uint8_t> bits(0x110000);
  const auto mark = [&](char32_t c, Property property) { bits[c] |= property; };
  const auto mark_all = [&](std::span<const tables::CodeRange> table, Property property) {
    for (const tables::CodeRange& range : table) {
      for (char32_t c = range.first; c <= range.last; ++c) mark(c, property);
    }
  };
  mark_all(tables::kWhiteSpaceRanges, kWhiteSpace);
  mark_all(tables::kPunctuationRanges, kPunctuation);
  mark_all(tables::kRemovedRanges, kRemoved);
  mark_all(tables::kHanRanges, kHan);
  mark_all(tables::kNonspacingMarkRanges, kNonspacingMark);
  mark_all(tables::kWordRanges, kWord);
  for (const tables::LowerCaseRange& range : tables::kLowerCaseRanges) {
    for (char32_t c = range.first; c <= range.last; c += range.step) mark(c, kCased);
  }
  mark(kDottedCapitalI, kCased);
  for (const tables::Decomposition& entry : tables::kDecompositions) mark(entry.code_point, kComposed);
  for (const tables::CombiningRange& range : tables::kCombiningRanges) {
    for (char32_t c = range.first; c <= range.last; ++c) mark(c, kComposed);
  }
  for (char32_t c = kSyllableBase; c < kSyllableBase + kSyllableCount; ++c) mark(c, kComposed);
  return bits;
}

}  // namespace

PropertyTable::PropertyTable(const std::vector<uint8_t>& bits) {
  for (size_t page = 0; page < page_of_.size(); ++page) {
    const uint8_t* begin = bits.data() + page * sizeof(Page);
    if (page == 0 || !std::equal(begin, begin + sizeof(Page), begin - sizeof(Page))) {
      std::copy_n(begin, sizeof(Page), pages_.emplace_back().begin());
    }
    page_of_[page] = static_cast<uint16_t>(pages_.size() - 1);
  }
}

const PropertyTable& property_table() {
  static const PropertyTable table(all_properties());
  return table;
}

ShortCodePoints decomposition_of(char32_t c) {
  ShortCodePoints result;
  if (is_syllable(c)) {
    const char32_t index = c - kSyllableBase, trail = index % kTrailCount;
    result.push_back(kLeadBase + index / (kVowelCount * kTrailCount));
    result.push_back(kVowelBase + index / kTrailCount % kVowelCount);
    if (trail > 0) result.push_back(kTrailBase + trail);
    return result;
  }
  const auto entry = std::ranges::lower_bound(tables::kDecompositions, c, {}, &tables::Decomposition::code_point);
  if (entry == std::end(tables::kDecompositions) || entry->code_point != c) {
    result.push_back(c);
    return result;
  }
  for (size_t i = 0; i < entry->length; ++i) result.push_back(tables::kDecompositionPool[entry->at + i]);
  return result;
}

ShortCodePoints lower_case_of(char32_t c) {
  ShortCodePoints result;
  if (c == kDottedCapitalI) {
    result.push_back('i');
    result.push_back(kDotAbove);
    return result;
  }
  const auto* range = find_range<tables::LowerCaseRange>(tables::kLowerCaseRanges, c);
  const bool cased = range != nullptr && (c - range->first) % range->step == 0;
  result.push_back(cased ? static_cast<char32_t>(static_cast<int32_t>(c) + range->difference) : c);
  return result;
}

std::span<const char32_t> compatibility_decomposition_of(char32_t c) {
  const auto entry = std::ranges::lower_bound(tables::kCompatibility, c, {}, &tables::Decomposition::code_point);
  if (entry == std::end(tables::kCompatibility) || entry->code_point != c) return {};
  return std::span(tables::kDecompositionPool).subspan(entry->at, entry->length);
}

std::optional<char32_t> composition_of(char32_t first, char32_t second) {
  if (first >= kLeadBase && first < kLeadBase + kLeadCount && is_vowel(second)) {
    return kSyllableBase + ((first - kLeadBase) * kVowelCount + (second - kVowelBase)) * kTrailCount;
  }
  if (is_syllable(first) && (first - kSyllableBase) % kTrailCount == 0 && is_trail(second)) {
    return first + (second - kTrailBase);
  }
  const auto key = [](const tables::Composition& entry) { return std::pair(entry.first, entry.second); };
  const auto entry = std::ranges::lower_bound(tables::kCompositions, std::pair(first, second), {}, key);
  if (entry == std::end(tables::kCompositions) || key(*entry) != std::pair(first, second)) return std::nullopt;
  return entry->composed;
}

bool joins_back(char32_t c) {
  static const std::set<char32_t> seconds = [] {
    std::set<char32_t> result;
    for (const tables::Composition& entry : tables::kCompositions) result.insert(entry.second);
    return result;
  }();
  return is_vowel(c) || is_trail(c) || seconds.contains(c);
}

std::vector<char32_t> normalized_code_points() {
  std::vector<char32_t> result;
  for (const tables::Decomposition& entry : tables::kDecompositions) result.push_back(entry.code_point);
  for (const tables::Decomposition& entry : tables::kCompatibility) result.push_back(entry.code_point);
  for (const tables::Composition& entry : tables::kCompositions) result.push_back(entry.second);
  for (const tables::CombiningRange& range : tables::kCombiningRanges) {
    for (char32_t c = range.first; c <= range.last; ++c) result.push_back(c);
  }
  for (char32_t i = 0; i < kVowelCount; ++i) result.push_back(kVowelBase + i);
  for (char32_t i = 0; i < kTrailCount; ++i) result.push_back(kTrailBase + i);
  for (char32_t i = 0; i < kSyllableCount; ++i) result.push_back(kSyllableBase + i);
  return result;
}

namespace {

enum WordClass : uint8_t { kLetter = 1, kNumber = 2 };

const PropertyTable& word_class_table() {
  static const PropertyTable table = [] {
    std::vector<uint8_t> bits(0x110000);
    for (const tables::CodeRange& range : tables::kLetterRanges) {
      for (char32_t c = range.first; c <= range.last; ++c) bits[c] |= kLetter;
    }
    for (const tables::CodeRange& range : tables::kNumberRanges) {
      for (char32_t c = range.first; c <= range.last; ++c) bits[c] |= kNumber;
    }
    return PropertyTable(bits);
  }();
  return table;
}

}  // namespace

bool is_letter(char32_t c) { return (word_class_table()[c] & kLetter) != 0; }

bool is_number(char32_t c) { return (word_class_table()[c] & kNumber) != 0; }

bool is_mark(char32_t c) { return find_range<tables::CodeRange>(tables::kMarkRanges, c) != nullptr; }

uint8_t combining_class_of(char32_t c) {
  const auto* range = find_range<tables::CombiningRange>(tables::kCombiningRanges, c);
  return range == nullptr ? 0 : range->combining_class;
}

}  // namespace clearhead::text
