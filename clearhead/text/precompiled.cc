// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/precompiled.h"

#include <fmt/format.h>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/grapheme.h"
#include "clearhead/text/rewriter.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr size_t kUnitBytes = sizeof(uint32_t);

// A cluster of so many bytes or more is taken code point by code point.
constexpr size_t kLongCluster = 6;

uint32_t read_unit(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = kUnitBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The fields of a unit. Source: darts-clone, class DoubleArrayUnit.
bool is_value(uint32_t unit) { return unit >> 31 != 0; }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffff; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ff; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

size_t count(std::string_view text) {
  size_t code_points = 0;
  for (const char byte : text) code_points += (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  return code_points;
}

// Writes what stays and what changes, and counts as the library does. Where something goes, the character written last
// stands for it too; at the beginning there is none, so that all that follows stands for what is before it.
class Pass {
 public:
  Pass(const AlignedText& source, AlignedText& result)
      : text_(source.bytes()), rewriter_(source, {0, static_cast<uint32_t>(text_.size())}, result) {}

  void keep(size_t begin, size_t end) {
    if (behind_) {
      for (size_t at = begin; at < end; at += code_point_at(text_, at).length) add({code_point_at(text_, at).value, 0});
      return;
    }
    flush();
    rewriter_.keep_to(static_cast<uint32_t>(end));
    empty_ = false;
  }

  void replace(size_t begin, size_t end, std::string_view with) {
    const size_t before = count(text_.substr(begin, end - begin));
    size_t written = 0;
    for (size_t at = 0; at < with.size(); ++written) {
      const ValidCodePoint here = code_point_at(with, at);
      add({here.value, written < before ? 0 : 1});
      at += here.length;
    }
    if (written < before) drop(end, static_cast<int32_t>(before - written));
  }

  void flush() {
    if (last_) rewriter_.put(*last_);
    last_.reset();
  }

 private:
  void add(Change change) {
    flush();
    last_ = change;
    empty_ = false;
  }

  void drop(size_t end, int32_t code_points) {
    if (last_) {
      last_->moves -= code_points;
    } else if (empty_) {
      behind_ = true;
    } else {
      rewriter_.skip_to(static_cast<uint32_t>(end));
    }
  }

  std::string_view text_;
  Rewriter rewriter_;
  std::optional<Change> last_;  // not yet written: more may go behind it
  bool empty_ = true;
  bool behind_ = false;
};

}  // namespace

Precompiled::Precompiled(std::string_view map, const std::string& where) {
  const size_t left = map.size() < kUnitBytes ? 0 : map.size() - kUnitBytes;
  const size_t trie_bytes = map.size() < kUnitBytes ? 0 : read_unit(map);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > left) {
    base::fail(where, "a map that begins with the size of its double array",
               fmt::format("size {} in {} bytes", trie_bytes, map.size()));
  }
  units_.reserve(trie_bytes / kUnitBytes);
  for (size_t at = kUnitBytes; at < kUnitBytes + trie_bytes; at += kUnitBytes) {
    units_.push_back(read_unit(map.substr(at)));
  }
  texts_ = map.substr(kUnitBytes + trie_bytes);
  check(where);
  for (size_t c = 0; c < stays_.size(); ++c) stays_[c] = c != '\r' && !find(std::string(1, static_cast<char>(c)));
}

void Precompiled::check(const std::string& where) const {
  if (const auto bad = base::first_invalid_utf8(texts_)) {
    base::fail(where, "texts of valid UTF-8", fmt::format("another byte at {} of them", *bad));
  }
  for (uint32_t i = 0; i < units_.size(); ++i) {
    if (is_value(units_[i]) || !has_value(units_[i])) continue;
    const uint32_t at = i ^ offset_of(units_[i]);
    const size_t value = at < units_.size() ? value_of(units_[at]) : SIZE_MAX;
    if (value >= texts_.size() || (static_cast<unsigned char>(texts_[value]) & 0xc0) == 0x80) {
      base::fail(where, "texts at the beginning of a character of the map",
                 fmt::format("unit {} of {}, which points elsewhere", i, units_.size()));
    }
    const std::string_view text = std::string_view(texts_).substr(value, kLongestText + 1);
    if (text.size() > kLongestText && text.find('\0') == std::string_view::npos) {
      base::fail(where, fmt::format("texts of at most {} bytes", kLongestText),
                 fmt::format("a longer one of unit {}", i));
    }
  }
}

// Calls visit(length, what it becomes) for the strings of the map at the beginning of text, the shortest first, until
// one returns false.
template <class Visit>
void Precompiled::visit_prefixes(std::string_view text, const Visit& visit) const {
  uint32_t at = offset_of(units_[0]);
  text = text.substr(0, kLongestText);  // a broken array may lead in a circle
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const uint32_t label = static_cast<unsigned char>(text[i]);
    at ^= label;
    if (at >= units_.size() || label_of(units_[at]) != label) return;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    const std::string_view found = std::string_view(texts_).substr(value_of(units_[at]));
    if (!visit(i + 1, found.substr(0, found.find('\0')))) return;
  }
}

std::optional<std::string_view> Precompiled::find(std::string_view text) const {
  std::optional<std::string_view> shortest;
  visit_prefixes(text, [&](size_t, std::string_view becomes) {
    shortest = becomes;
    return false;
  });
  return shortest;
}

std::optional<Precompiled::Match> Precompiled::find_longest(std::string_view text) const {
  std::optional<Match> longest;
  visit_prefixes(text, [&](size_t length, std::string_view becomes) {
    const bool whole = length == text.size() || (static_cast<unsigned char>(text[length]) & 0xc0) != 0x80;
    if (whole) longest = Match{length, becomes};
    return true;
  });
  return longest;
}

void Precompiled::normalize(const AlignedText& source, AlignedText& result) const {
  const std::string_view text = source.bytes();
  Pass pass(source, result);
  const auto is_ascii = [&](size_t at) { return static_cast<unsigned char>(text[at]) < stays_.size(); };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_ascii(end) && stays_[static_cast<unsigned char>(text[end])] &&
           (end + 1 == text.size() || is_ascii(end + 1))) {
      ++end;
    }
    if (end > at) {
      pass.keep(at, end);
      at = end;
      continue;
    }
    end = end_of_grapheme(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    if (const auto found = cluster.size() < kLongCluster ? find(cluster) : std::nullopt) {
      pass.replace(at, end, *found);
      at = end;
    }
    while (at < end) {
      const size_t next = at + code_point_at(text, at).length;
      if (const auto found = find(text.substr(at, next - at))) {
        pass.replace(at, next, *found);
      } else {
        pass.keep(at, next);
      }
      at = next;
    }
  }
  pass.flush();
}

}  // namespace clearhead::text
