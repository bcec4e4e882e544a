// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/capture/stage.h"

namespace clearhead::capture {

// A set of indices as people write it: "0-3,5"; sorted, without repeats.
// Throws: Error (usage) naming what for anything else, also for an empty text or an index of limit or more.
std::vector<size_t> parse_index_set(std::string_view text, std::string_view what, size_t limit);

// Which stages of which layers and heads are kept. Absent layers or heads: all.
struct Selection {
  std::vector<Stage> stages;
  std::optional<std::vector<size_t>> layers;
  std::optional<std::vector<size_t>> heads;

  bool includes(Stage stage, size_t layer) const;
};

// Reads "query,key,weights" (or "all"). Throws: Error (usage) naming the unknown stage and all that exist.
std::vector<Stage> parse_stages(std::string_view text);

}  // namespace clearhead::capture
