// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace clearhead::text {

// The pieces of at most 8 bytes, looked up whole. Most words are one of them, and this finds it with one access to
// memory where a trie needs one for each byte: an open-addressing hash table whose keys are the bytes themselves.
class ShortPieces {
 public:
  static constexpr size_t kMaxBytes = 8;

  explicit ShortPieces(size_t count);

  // Does nothing with a piece that is empty or longer. At most `count` may be added.
  void add(std::string_view piece, uint32_t id);

  std::optional<uint32_t> find(std::string_view word) const {
    if (word.empty() || word.size() > kMaxBytes) return std::nullopt;
    const uint64_t bytes = packed(word);
    for (size_t slot = slot_of(bytes);; slot = (slot + 1) & mask_) {
      const Slot& own = slots_[slot];
      if (own.size == 0) return std::nullopt;
      if (own.bytes == bytes && own.size == word.size()) return own.id;
    }
  }

 private:
  struct Slot {
    uint64_t bytes;
    uint32_t size;  // 0: free
    uint32_t id;
  };

  // Up to 8 bytes as a number. Loads of fixed sizes that overlap, since a copy of variable size is a call.
  static uint64_t packed(std::string_view word) {
    const char* bytes = word.data();
    const size_t size = word.size();
    const auto load4 = [](const char* from) {
      uint32_t value;
      std::memcpy(&value, from, sizeof(value));
      return uint64_t{value};
    };
    if (size >= 4) return load4(bytes) | load4(bytes + size - 4) << 32;
    const auto byte = [bytes](size_t i) { return uint64_t{static_cast<unsigned char>(bytes[i])}; };
    return byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }

  size_t slot_of(uint64_t bytes) const { return ((bytes ^ bytes >> 29) * 0x9e3779b97f4a7c15u) >> shift_; }

  std::vector<Slot> slots_;
  size_t mask_;
  int shift_;
};

}  // namespace clearhead::text
