// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/code_set.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "clearhead/text/regex_tables.h"

namespace clearhead::text {
namespace {

constexpr char32_t kLastCodePoint = 0x10ffff;

}  // namespace

void CodeSet::add(char32_t first, char32_t last) {
  // All that touch the new stretch become part of it.
  const auto begin = std::ranges::find_if(ranges_, [&](const Range& range) { return range.last + 1 >= first; });
  const auto end = std::find_if(begin, ranges_.end(), [&](const Range& range) { return range.first > last + 1; });
  if (begin != end) {
    first = std::min(first, begin->first);
    last = std::max(last, std::prev(end)->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodeSet::add(const CodeSet& other) {
  if (ranges_.empty()) {
    ranges_ = other.ranges_;
    return;
  }
  std::vector<Range> both;
  std::ranges::merge(ranges_, other.ranges_, std::back_inserter(both));
  ranges_.clear();
  for (const Range& range : both) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

void CodeSet::append(char32_t first, char32_t last) { ranges_.push_back({first, last}); }

CodeSet CodeSet::complement() const {
  CodeSet result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) result.ranges_.push_back({next, kLastCodePoint});
  return result;
}

CodeSet CodeSet::intersection(const CodeSet& other) const {
  CodeSet outside = complement();
  outside.add(other.complement());
  return outside.complement();
}

bool CodeSet::contains(char32_t c) const {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, &Range::first);
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

std::optional<CodeSet> code_set_of(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto entry = std::ranges::lower_bound(tables::kRegexProperties, plain, {}, &tables::RegexProperty::name);
  if (entry == std::end(tables::kRegexProperties) || entry->name != plain) return std::nullopt;
  CodeSet result;
  for (const tables::CodeRange& range : std::span(tables::kRegexRanges).subspan(entry->at, entry->length)) {
    result.append(range.first, range.last);
  }
  return result;
}

}  // namespace clearhead::text
