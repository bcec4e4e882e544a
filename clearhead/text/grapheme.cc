// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/grapheme.h"

#include <cstdint>
#include <vector>

#include "clearhead/text/break_tables.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr char32_t kFirstRegional = 0x1f1e6, kLastRegional = 0x1f1ff;
constexpr char32_t kFirstSyllable = 0xac00, kLastSyllable = 0xd7a3, kTrailCount = 28;

const PropertyTable& grapheme_table() {
  static const PropertyTable table = [] {
    std::vector<uint8_t> kinds(0x110000);
    const auto set = [&](char32_t c, Grapheme kind) { kinds[c] = static_cast<uint8_t>(kind); };
    for (const tables::GraphemeRange& range : tables::kGraphemeRanges) {
      for (char32_t c = range.first; c <= range.last; ++c) set(c, range.kind);
    }
    for (char32_t c = kFirstRegional; c <= kLastRegional; ++c) set(c, Grapheme::regional);
    for (char32_t c = kFirstSyllable; c <= kLastSyllable; ++c) {
      set(c, (c - kFirstSyllable) % kTrailCount == 0 ? Grapheme::lead_vowel : Grapheme::lead_vowel_trail);
    }
    return PropertyTable(kinds);
  }();
  return table;
}

bool is_extend(Grapheme kind) {
  return kind == Grapheme::extend || kind == Grapheme::linked_extend || kind == Grapheme::linker;
}

bool joins_as_hangul(Grapheme before, Grapheme next) {
  using enum Grapheme;
  switch (before) {
    case lead: return next == lead || next == vowel || next == lead_vowel || next == lead_vowel_trail;
    case lead_vowel:
    case vowel: return next == vowel || next == trail;
    case lead_vowel_trail:
    case trail: return next == trail;
    default: return false;
  }
}

// What a cluster has been so far.
class Cluster {
 public:
  explicit Cluster(Grapheme first) { take(first); }

  bool joins(Grapheme next) const {
    using enum Grapheme;
    if (last_ == control || next == control) return false;
    if (is_extend(next) || next == joiner || next == spacing_mark || last_ == prepend) return true;
    if (next == pictograph) return picture_ == Picture::joined;
    if (next == regional) return regionals_ % 2 == 1;
    if (next == consonant) return conjunct_ == Conjunct::linked;
    return joins_as_hangul(last_, next);
  }

  void take(Grapheme next) {
    regionals_ = next == Grapheme::regional ? regionals_ + 1 : 0;
    take_picture(next);
    take_conjunct(next);
    last_ = next;
  }

 private:
  enum class Picture : uint8_t { none, open, joined };   // a picture and its marks, the joiner behind them
  enum class Conjunct : uint8_t { none, open, linked };  // a consonant and its marks, a linker among them

  void take_picture(Grapheme next) {
    if (next == Grapheme::pictograph) {
      picture_ = Picture::open;
    } else if (picture_ == Picture::open && next == Grapheme::joiner) {
      picture_ = Picture::joined;
    } else if (picture_ != Picture::open || !is_extend(next)) {
      picture_ = Picture::none;
    }
  }

  void take_conjunct(Grapheme next) {
    if (next == Grapheme::consonant) {
      conjunct_ = Conjunct::open;
    } else if (conjunct_ != Conjunct::none && next == Grapheme::linker) {
      conjunct_ = Conjunct::linked;
    } else if (next != Grapheme::linked_extend && next != Grapheme::joiner) {
      conjunct_ = Conjunct::none;
    }
  }

  Grapheme last_ = Grapheme::other;
  uint32_t regionals_ = 0;  // side by side at the end
  Picture picture_ = Picture::none;
  Conjunct conjunct_ = Conjunct::none;
};

}  // namespace

size_t end_of_grapheme(std::string_view text, size_t at) {
  const PropertyTable& table = grapheme_table();
  if (text.substr(at).starts_with("\r\n")) return at + 2;
  const auto kind_of = [&](char32_t c) { return static_cast<Grapheme>(table[c]); };
  ValidCodePoint here = code_point_at(text, at);
  Cluster cluster(kind_of(here.value));
  for (at += here.length; at < text.size(); at += here.length) {
    here = code_point_at(text, at);
    const Grapheme next = kind_of(here.value);
    if (!cluster.joins(next)) break;
    cluster.take(next);
  }
  return at;
}

}  // namespace clearhead::text
