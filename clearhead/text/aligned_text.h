// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::text {

// Bytes [begin, end) of a text. 32 bits: a text has at most kMaxTextBytes.
struct Span {
  uint32_t begin, end;

  size_t size() const { return end - begin; }
  bool operator==(const Span&) const = default;
};

// The longest text that can be encoded. Normalizing lengthens a text (a Han character of 3 bytes becomes 5, Hangul 9),
// and the result must be countable in 32 bits.
constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr size_t kMaxNormalizedBytes = UINT32_MAX;

// What a normalizer may make of a text: so many times its bytes, and some more for short ones. Unicode's own forms make
// at most 18 of a character.
constexpr size_t kMaxGrowth = 64, kFreeGrowthBytes = size_t{1} << 24;

// A text on its way through the normalizers that knows which bytes of the original each of its own came from. Whatever
// makes it grow beyond kMaxGrowth and kMaxNormalizedBytes throws an Error.
// The origin is kept in runs: a kept run has its characters where the original has them, one for one and of the same
// lengths; a replaced run stands, whole, for one stretch of the original. Text that nobody changed is one run.
class AlignedText {
 public:
  AlignedText() = default;

  // A text of its own, which may grow to `most` bytes.
  static AlignedText limited(std::string_view bytes, size_t most) {
    AlignedText result;
    result.most_bytes_ = most;
    result.keep(bytes, 0);
    return result;
  }

  // A stretch of the original, beginning at byte `begin` of it, as it is.
  AlignedText(std::string_view bytes, uint32_t begin) : most_bytes_(most_bytes_of(bytes.size())) { keep(bytes, begin); }

  // An empty text that keeps account of origins if this one does, and may grow as this one.
  AlignedText empty_like() const {
    AlignedText result;
    result.tracked_ = tracked_;
    result.most_bytes_ = most_bytes_;
    return result;
  }

  // A stretch of the original that keeps no account of origins, which is faster: each is {0, 0}.
  static AlignedText untracked(std::string_view bytes) {
    AlignedText result;
    result.tracked_ = false;
    result.bytes_ = bytes;
    result.most_bytes_ = most_bytes_of(bytes.size());
    return result;
  }

  std::string_view bytes() const { return bytes_; }

  // The bytes of the original that the bytes `span` came from: from where the first came to where the last came.
  // span must not be empty.
  Span original(Span span) const;

  // The part `span` as a text of its own, with the same original.
  AlignedText slice(Span span) const;

  // Appends bytes that stand character for character, each of the length it had, for those of `source` from `begin`.
  // Returns them, to be rewritten in place under the same rule; they are valid until more is appended.
  std::span<char> keep(std::string_view bytes, const AlignedText& source, uint32_t begin);

  // Appends bytes that together stand for the original bytes `original`.
  void replace(std::string_view bytes, Span original);

  // Cuts the text back to a size that it had.
  void truncate(size_t size);

  void clear();
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

  // For a caller that asks in rising order, as a rule: finds each place from the last one, if it is near.
  class Cursor {
   public:
    explicit Cursor(const AlignedText& text) : text_(&text) {}
    Span original(Span span) {
      const uint32_t begin = text_->begin_of(run_at(span.begin), span.begin);
      return {begin, text_->end_of(run_at(span.end - 1), span.end)};
    }

   private:
    size_t run_at(uint32_t at) {
      constexpr size_t kNear = 16;
      const std::vector<Run>& runs = text_->runs_;
      if (runs[run_].at > at) return run_ = text_->run_of(at);
      for (const size_t from = run_; run_ + 1 < runs.size() && runs[run_ + 1].at <= at; ++run_) {
        if (run_ == from + kNear) return run_ = text_->run_of(at);
      }
      return run_;
    }

    const AlignedText* text_;
    size_t run_ = 0;
  };

 private:
  static constexpr uint32_t kKept = UINT32_MAX;

  struct Run {
    uint32_t at;      // first byte here
    uint32_t begin;   // first byte of the original
    uint32_t length;  // bytes of the original, kKept for a kept run
  };

  static size_t most_bytes_of(size_t bytes) {
    return bytes < kMaxNormalizedBytes / kMaxGrowth - kFreeGrowthBytes / kMaxGrowth
               ? bytes * kMaxGrowth + kFreeGrowthBytes
               : kMaxNormalizedBytes;
  }

  void append(std::string_view bytes);
  void keep(std::string_view bytes, uint32_t begin);
  size_t run_of(uint32_t at) const;

  uint32_t begin_of(size_t run, uint32_t at) const {
    const Run& own = runs_[run];
    return own.length == kKept ? own.begin + (at - own.at) : own.begin;
  }

  uint32_t end_of(size_t run, uint32_t end) const {
    const Run& own = runs_[run];
    return own.length == kKept ? own.begin + (end - own.at) : own.begin + own.length;
  }

  std::string bytes_;
  std::vector<Run> runs_;
  bool tracked_ = true;
  size_t most_bytes_ = kMaxNormalizedBytes;
};

}  // namespace clearhead::text
