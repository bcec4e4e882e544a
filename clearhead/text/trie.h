// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace clearhead::text {

// Byte strings with a value each, walked byte by byte: the longest string at the head of a text is found in one walk.
// Nodes are numbers; an edge (node, byte) -> node is an entry of one open-addressing hash table, so that building needs
// no sorting and a step is one look-up in an array that fits into the cache.
class Trie {
 public:
  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;

  // The longest string, and the most bytes of all strings together, that a trie takes.
  static constexpr size_t kMaxStringBytes = 1024, kMaxNodes = size_t{1} << 24;

  Trie();

  // Adds a string of at most kMaxStringBytes; false if it is there already or there is no room for it.
  bool add(std::string_view string, uint32_t value);

  // The node after one more byte, kNone if no string goes on that way.
  uint32_t step(uint32_t node, char byte) const {
    const uint32_t key = key_of(node, byte);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      const Edge& edge = edges_[slot];
      if (edge.target == kRoot) return kNone;
      if (edge.key == key) return edge.target;
    }
  }

  // The node after all bytes of a string, kNone if there is none.
  uint32_t walk(std::string_view string) const;

  // The value of the string that ends at a node, kNone if none does.
  uint32_t value(uint32_t node) const { return values_[node]; }

  struct Match {
    uint32_t value;
    size_t length;
  };

  // The longest non-empty string at the head of text, walking on from node.
  std::optional<Match> longest(std::string_view text, uint32_t node = kRoot) const;

 private:
  // Free while target is the root, to which no edge leads.
  struct Edge {
    uint32_t key, target;
  };

  static uint32_t key_of(uint32_t node, char byte) { return (node << 8) | static_cast<unsigned char>(byte); }
  size_t slot_of(uint32_t key) const { return (key * 0x9e3779b97f4a7c15u) >> shift_; }
  uint32_t insert(uint32_t node, char byte);
  void grow();

  std::vector<Edge> edges_;
  std::vector<uint32_t> values_;  // [nodes]
  size_t mask_;
  int shift_;
};

}  // namespace clearhead::text
