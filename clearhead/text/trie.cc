// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/trie.h"

#include <utility>

namespace clearhead::text {

Trie::Trie() : edges_(16), values_{kNone}, mask_(15), shift_(60) {}

void Trie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  mask_ = edges_.size() - 1;
  --shift_;
  for (const Edge& edge : old) {
    if (edge.target == kRoot) continue;
    size_t slot = slot_of(edge.key);
    while (edges_[slot].target != kRoot) slot = (slot + 1) & mask_;
    edges_[slot] = edge;
  }
}

uint32_t Trie::insert(uint32_t node, char byte) {
  const auto target = static_cast<uint32_t>(values_.size());
  values_.push_back(kNone);
  if (values_.size() * 2 > edges_.size()) grow();
  const uint32_t key = key_of(node, byte);
  size_t slot = slot_of(key);
  while (edges_[slot].target != kRoot) slot = (slot + 1) & mask_;
  edges_[slot] = {key, target};
  return target;
}

bool Trie::add(std::string_view string, uint32_t value) {
  if (string.size() > kMaxStringBytes || values_.size() + string.size() > kMaxNodes) return false;
  uint32_t node = kRoot;
  for (const char byte : string) {
    const uint32_t next = step(node, byte);
    node = next == kNone ? insert(node, byte) : next;
  }
  if (values_[node] != kNone) return false;
  values_[node] = value;
  return true;
}

uint32_t Trie::walk(std::string_view string) const {
  uint32_t node = kRoot;
  for (size_t i = 0; i < string.size() && node != kNone; ++i) node = step(node, string[i]);
  return node;
}

std::optional<Trie::Match> Trie::longest(std::string_view text, uint32_t node) const {
  std::optional<Match> found;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == kNone) break;
    if (values_[node] != kNone) found = {values_[node], i + 1};
  }
  return found;
}

}  // namespace clearhead::text
