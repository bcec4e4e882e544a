// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/code_point_trie.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

// A key is never 0, so a free slot is none that is looked for.
constexpr size_t kFewestSlots = 16;

}  // namespace

CodePointTrie::CodePointTrie(size_t code_points)
    : edges_(std::bit_ceil(std::max(2 * std::min(code_points, kMaxNodes), kFewestSlots))),
      mask_(edges_.size() - 1),
      shift_(64 - std::countr_zero(edges_.size())) {}

void CodePointTrie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  mask_ = edges_.size() - 1;
  --shift_;
  for (const Edge& edge : old) {
    if (edge.node == kRoot) continue;
    size_t slot = slot_of(edge.key);
    while (edges_[slot].node != kRoot) slot = (slot + 1) & mask_;
    edges_[slot] = edge;
  }
}

CodePointTrie::Edge& CodePointTrie::edge_of(uint32_t node, char32_t c) {
  const uint64_t key = key_of(node, c);
  size_t slot = slot_of(key);
  for (; edges_[slot].node != kRoot; slot = (slot + 1) & mask_) {
    if (edges_[slot].key == key) return edges_[slot];
  }
  if (nodes_ * 2 >= edges_.size()) {
    grow();
    slot = slot_of(key);
    while (edges_[slot].node != kRoot) slot = (slot + 1) & mask_;
  }
  edges_[slot] = {key, static_cast<uint32_t>(nodes_++), kNone};
  return edges_[slot];
}

bool CodePointTrie::set(std::string_view string, uint32_t value) {
  if (nodes_ + string.size() > kMaxNodes) return false;
  uint32_t node = kRoot;
  size_t length = 0;
  for (size_t at = 0; at < string.size(); ++length) {
    const ValidCodePoint here = code_point_at(string, at);
    if (length == kMaxLength) return false;
    at += here.length;
    Edge& edge = edge_of(node, here.value);
    if (at == string.size()) edge.value = value;
    node = edge.node;
  }
  return true;
}

uint32_t CodePointTrie::find(std::string_view string) const {
  Step at = {kRoot, kNone};
  for (size_t i = 0; i < string.size() && at.node != kNone;) {
    const ValidCodePoint here = code_point_at(string, i);
    at = step(at.node, here.value);
    i += here.length;
  }
  return at.value;
}

}  // namespace clearhead::text
