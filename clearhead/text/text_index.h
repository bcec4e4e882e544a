// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace clearhead::text {

// Finds the number of a text among texts that stand elsewhere: an open-addressing hash table of numbers alone, since
// vocabularies have their pieces already and a copy of them as keys takes several times as much. `text_of(number)` is
// where a text stands.
class TextIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Room for `count` texts.
  explicit TextIndex(size_t count = 0) : slots_(std::bit_ceil(2 * count + 1), kNone), mask_(slots_.size() - 1) {}

  // The number of a text, kNone if it was not added.
  template <class TextOf>
  uint32_t find(std::string_view text, const TextOf& text_of) const {
    return slots_[slot_of(text, text_of)];
  }

  // Gives a text a number and returns kNone; of one that was added before the number that it has and keeps. At most
  // `count` may be added.
  template <class TextOf>
  uint32_t add(std::string_view text, uint32_t number, const TextOf& text_of) {
    uint32_t& slot = slots_[slot_of(text, text_of)];
    if (slot == kNone) {
      slot = number;
      return kNone;
    }
    return slot;
  }

 private:
  // Where the text stands, or would.
  template <class TextOf>
  size_t slot_of(std::string_view text, const TextOf& text_of) const {
    size_t slot = std::hash<std::string_view>()(text) & mask_;
    while (slots_[slot] != kNone && text_of(slots_[slot]) != text) slot = (slot + 1) & mask_;
    return slot;
  }

  std::vector<uint32_t> slots_;
  size_t mask_;
};

}  // namespace clearhead::text
