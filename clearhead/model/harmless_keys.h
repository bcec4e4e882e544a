// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace clearhead::model {

// A key of a config.json that has no effect on what is computed here, and why.
struct HarmlessKey {
  std::string_view key;
  std::string_view reason;
  std::string_view only = "";  // the one value, as JSON, that has none; empty: whatever stands there
};

// Those of every family. What only some families have, these name themselves.
// Source: PretrainedConfig and the configs that published checkpoints have (tests/model/data/published_configs.json).
std::span<const HarmlessKey> harmless_keys();

// A key that says that the files hold something else than parameters of the family, which is not read here.
struct RefusedKey {
  std::string_view key;
  std::string_view expected, found, advice;
};

std::span<const RefusedKey> refused_keys();

}  // namespace clearhead::model
