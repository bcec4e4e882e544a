// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clearhead::text {

// Strings with a value each, walked code point by code point: text of three bytes a character takes a third of the
// steps of a trie of bytes. An entry of the one open-addressing hash table holds an edge and the value of the string
// that ends with it, so that a step is one access to memory.
class CodePointTrie {
 public:
  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;

  // The longest string in code points, and the most code points of all strings together, that a trie takes.
  static constexpr size_t kMaxLength = 1024, kMaxNodes = size_t{1} << 24;

  struct Step {
    uint32_t node;   // kNone: no string goes on that way
    uint32_t value;  // of the string that ends here, kNone if none does
  };

  // Room for about `code_points` without growing.
  explicit CodePointTrie(size_t code_points);

  // Gives a string, which is valid UTF-8 and not empty, a value; the last of several counts. False if it is too long or
  // there is no room for it.
  bool set(std::string_view string, uint32_t value);

  // From a node on with one more code point.
  Step step(uint32_t node, char32_t c) const {
    const uint64_t key = key_of(node, c);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      const Edge& edge = edges_[slot];
      if (edge.key == key) return {edge.node, edge.value};
      if (edge.node == kRoot) return {kNone, kNone};
    }
  }

  // The value of a whole string, kNone if it has none.
  uint32_t find(std::string_view string) const;

 private:
  // Free while node is the root, to which no edge leads.
  struct Edge {
    uint64_t key;
    uint32_t node, value;
  };

  static uint64_t key_of(uint32_t node, char32_t c) { return (uint64_t{node} << 21 | c) + 1; }
  size_t slot_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15u) >> shift_; }
  Edge& edge_of(uint32_t node, char32_t c);
  void grow();

  std::vector<Edge> edges_;
  size_t nodes_ = 1;
  size_t mask_;
  int shift_;
};

}  // namespace clearhead::text
