// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace clearhead::tests {

// FNV-1a of 32 bits over the ids, each as two bytes, the lower first: how goldens hold the ids of many texts.
inline std::string hash_of(const std::vector<int64_t>& ids) {
  uint32_t value = 0x811c9dc5;
  for (const int64_t id : ids) {
    for (const auto byte : {static_cast<uint32_t>(id & 0xff), static_cast<uint32_t>(id >> 8)}) {
      value = (value ^ byte) * 0x01000193;
    }
  }
  return fmt::format("{:08x}", value);
}

}  // namespace clearhead::tests
