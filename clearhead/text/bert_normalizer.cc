// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/bert_normalizer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "clearhead/base/utf8.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;

// Bytes that are ASCII and, if clean, no control character. Never says yes wrongly; \t \n \r get a no here.
bool plain_word(const char* bytes, bool clean) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  if (!clean) return (word & (kOnes * 0x80)) == 0;
  const uint64_t below_space = word - kOnes * 0x20, is_delete = (word ^ (kOnes * 0x7f)) - kOnes;
  return ((word | below_space | is_delete) & (kOnes * 0x80)) == 0;
}

bool plain_byte(char byte, bool clean) {
  const auto c = static_cast<unsigned char>(byte);
  return c < 0x80 && (!clean || (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r');
}

void lower_ascii(std::span<char> bytes) {
  for (char& c : bytes) c = static_cast<char>(c + ((c >= 'A' && c <= 'Z') ? 'a' - 'A' : 0));
}

void space_ascii(std::span<char> bytes) {
  for (char& c : bytes) c = c < ' ' ? ' ' : c;
}

// One run of the normalizer over one text.
class Pass {
 public:
  Pass(const BertNormalizer::Config& config, const AlignedText& source, AlignedText& result)
      : config_(config), table_(property_table()), source_(source), text_(source.bytes()), result_(result) {
    if (config.clean_text) touched_ |= kRemoved | kWhiteSpace;
    if (config.space_han) touched_ |= kHan;
    if (config.strip_accents) touched_ |= kNonspacingMark | kComposed;
    if (config.lower_case) touched_ |= kCased;
  }

  void run() {
    result_.reserve(result_.bytes().size() + text_.size() + text_.size() / 4);
    while (at_ < text_.size()) {
      if (static_cast<unsigned char>(text_[at_]) < 0x80) {
        ascii();
      } else {
        other();
      }
    }
  }

 private:
  // A run of ASCII characters, or one that clean_text deletes.
  void ascii() {
    const bool clean = config_.clean_text;
    size_t end = at_;
    while (true) {
      while (end + 8 <= text_.size() && plain_word(text_.data() + end, clean)) end += 8;
      const size_t before = end;
      while (end < text_.size() && end < before + 8 && plain_byte(text_[end], clean)) ++end;
      if (end < before + 8) break;
    }
    if (end == at_) {
      ++at_;
      return;
    }
    const std::span<char> kept = keep(end);
    if (clean) space_ascii(kept);
    if (config_.lower_case) lower_ascii(kept);
  }

  // A run of code points that no step touches, or one that some step does.
  void other() {
    const ValidCodePoint here = code_point_at(text_, at_);
    const unsigned bits = table_[here.value] & touched_;
    if (bits == 0) {
      size_t end = at_ + here.length;
      while (end < text_.size() && static_cast<unsigned char>(text_[end]) >= 0x80) {
        const ValidCodePoint next = code_point_at(text_, end);
        if ((table_[next.value] & touched_) != 0) break;
        end += next.length;
      }
      keep(end);
    } else if ((bits & kRemoved) != 0) {
      at_ += here.length;
    } else if ((bits & (kWhiteSpace | kHan)) != 0) {
      spaced(here, bits);
    } else if ((bits & kNonspacingMark) != 0 || ((bits & kComposed) != 0 && is_mark(here.value))) {
      mark(here);
    } else {
      starter(here);
    }
  }

  void spaced(ValidCodePoint here, unsigned bits) {
    std::string bytes = " ";
    if ((bits & kHan) != 0) {
      for (const char32_t part : decomposed(here.value)) append_lower(bytes, part);
      bytes += ' ';
    }
    replace(here, bytes);
  }

  // A code point of combining class 0 that is decomposed or lowered.
  void starter(ValidCodePoint here) {
    const ShortCodePoints parts = decomposed(here.value);
    std::string bytes;
    size_t first_part = 0;
    bool keeps_marks = false;
    for (const char32_t part : parts) {
      keeps_marks = keeps_marks || (!bytes.empty() && is_kept_mark(part));
      append_lower(bytes, part);
      if (first_part == 0) first_part = bytes.size();
    }
    const size_t before = result_.bytes().size();
    const Span origin = origin_of(here);
    if (bytes.size() == here.length && parts.size() == 1) {
      std::ranges::copy(bytes, keep(at_ + here.length).begin());
    } else {
      replace(here, bytes);
    }
    if (keeps_marks) tail_ = {before + first_part, here.value, origin};
  }

  // A nonspacing mark, which is deleted, or another mark. Canonical order matters only where a mark is kept.
  void mark(ValidCodePoint here) {
    if (at_ >= scanned_) scan_marks();
    if (!scan_found_kept_ && tail_.size == 0) {
      at_ = scanned_;
    } else if (is_mark(here.value)) {
      reorder();
    } else {
      at_ += here.length;
      tail_ = {};
    }
  }

  // Finds the end of the marks from here that are deleted, and whether one follows that is kept.
  void scan_marks() {
    scan_found_kept_ = false;
    for (scanned_ = at_; scanned_ < text_.size();) {
      const ValidCodePoint next = code_point_at(text_, scanned_);
      const unsigned bits = table_[next.value] & touched_;
      if ((bits & (kNonspacingMark | kRemoved)) == 0) {
        scan_found_kept_ = (bits & kComposed) != 0 && is_mark(next.value);
        if (scan_found_kept_) scanned_ += next.length;
        return;
      }
      scanned_ += next.length;
    }
  }

  struct Mark {
    uint8_t combining_class;
    bool extra;  // not the first part of a decomposition
    char32_t value;
  };

  // Puts all marks up to the next starter into canonical order and appends those that are kept. The library lets the
  // n-th of them stand for the n-th mark of the source whatever its place was, and so do we.
  void reorder() {
    std::vector<Mark> marks;
    std::vector<Span> origins;
    const auto add = [&](char32_t part, bool extra) { marks.push_back({combining_class_of(part), extra, part}); };
    Span origin = tail_.origin;
    if (tail_.size != 0) {
      result_.truncate(tail_.size);
      const ShortCodePoints parts = decomposition_of(tail_.starter);
      for (size_t i = 1; i < parts.size(); ++i) add(parts[i], true);
    }
    while (at_ < text_.size()) {
      const ValidCodePoint next = code_point_at(text_, at_);
      const bool removed = (table_[next.value] & touched_ & kRemoved) != 0;
      if (!removed && !is_mark(next.value)) break;
      if (!removed) {
        origins.push_back(origin_of(next));
        const ShortCodePoints parts = decomposition_of(next.value);
        for (size_t i = 0; i < parts.size(); ++i) add(parts[i], i > 0);
      }
      at_ += next.length;
    }
    std::ranges::stable_sort(marks, {}, &Mark::combining_class);
    size_t used = 0;
    for (const Mark& own : marks) {
      if (!own.extra) origin = origins[used++];
      std::string bytes;
      append_lower(bytes, own.value);
      result_.replace(bytes, origin);
    }
    tail_ = {};
  }

  ShortCodePoints decomposed(char32_t c) const {
    if (config_.strip_accents && (table_[c] & kComposed) != 0) return decomposition_of(c);
    ShortCodePoints itself;
    itself.push_back(c);
    return itself;
  }

  // Appends a decomposed code point in lower case, if its kind is not deleted.
  void append_lower(std::string& bytes, char32_t c) const {
    const unsigned bits = table_[c] & touched_;
    if ((bits & kNonspacingMark) != 0) return;
    if ((bits & kCased) == 0) return base::append_utf8(bytes, c);
    for (const char32_t part : lower_case_of(c)) base::append_utf8(bytes, part);
  }

  bool is_mark(char32_t c) const {
    return (table_[c] & kComposed) != 0 && combining_class_of(decomposition_of(c)[0]) != 0;
  }

  bool is_kept_mark(char32_t c) const { return (table_[c] & kNonspacingMark) == 0 && is_mark(c); }

  Span origin_of(ValidCodePoint here) const {
    return source_.original({static_cast<uint32_t>(at_), static_cast<uint32_t>(at_ + here.length)});
  }

  // Moves on to end, keeping what is passed.
  std::span<char> keep(size_t end) {
    const size_t begin = at_;
    at_ = end;
    tail_ = {};
    return result_.keep(text_.substr(begin, end - begin), source_, static_cast<uint32_t>(begin));
  }

  // Moves on past one code point, which becomes bytes.
  void replace(ValidCodePoint here, std::string_view bytes) {
    result_.replace(bytes, origin_of(here));
    at_ += here.length;
    tail_ = {};
  }

  // The last starter, if its decomposition ends in marks that are kept and that later marks may come before.
  struct Tail {
    size_t size = 0;  // of the result after the starter itself; 0: none
    char32_t starter = 0;
    Span origin = {0, 0};
  };

  BertNormalizer::Config config_;
  const PropertyTable& table_;
  const AlignedText& source_;
  std::string_view text_;
  AlignedText& result_;
  unsigned touched_ = 0;  // properties that some step acts on
  size_t at_ = 0;
  size_t scanned_ = 0;
  bool scan_found_kept_ = false;
  Tail tail_;
};

}  // namespace

void BertNormalizer::normalize(const AlignedText& source, AlignedText& result) const {
  Pass(config_, source, result).run();
}

}  // namespace clearhead::text
