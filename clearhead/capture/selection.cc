// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "clearhead/base/error.h"

namespace clearhead::capture {
namespace {

// Splits at commas; "" has one empty part.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    if (comma == std::string_view::npos) return parts;
    begin = comma + 1;
  }
}

// A decimal number below limit, or nothing.
std::optional<size_t> parse_index(std::string_view digits, size_t limit) {
  size_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc{} || end != digits.data() + digits.size() || value >= limit) return std::nullopt;
  return value;
}

}  // namespace

std::vector<size_t> parse_index_set(std::string_view text, std::string_view what, size_t limit) {
  const auto refuse = [&](std::string_view part) {
    const std::string range = limit == 1 ? "0 (there is only one)" : fmt::format("numbers from 0 to {}", limit - 1);
    base::refuse(what, limit == 0 ? "nothing (there are none)" : fmt::format("{}, like \"0-3,5\"", range),
                 base::quoted(part));
  };
  std::set<size_t> indices;
  for (std::string_view part : split(text)) {
    const size_t dash = part.find('-');
    const auto first = parse_index(part.substr(0, dash), limit);
    const auto last = dash == std::string_view::npos ? first : parse_index(part.substr(dash + 1), limit);
    if (!first || !last || *last < *first) refuse(part);
    for (size_t index = *first; index <= *last; ++index) indices.insert(index);
  }
  return {indices.begin(), indices.end()};
}

bool Selection::includes(Stage stage, size_t layer) const {
  if (std::ranges::find(stages, stage) == stages.end()) return false;
  if (info(stage).place != Place::in_layer || !layers) return true;
  return std::ranges::find(*layers, layer) != layers->end();
}

std::vector<Stage> parse_stages(std::string_view text) {
  std::set<Stage> chosen;
  if (text == "all") {
    for (const StageInfo& row : stages()) chosen.insert(row.stage);
    return {chosen.begin(), chosen.end()};
  }
  for (std::string_view name : split(text)) {
    const auto stage = stage_named(name);
    if (!stage) {
      std::string names;
      for (const StageInfo& row : stages()) names += fmt::format("{}, ", row.name);
      base::refuse("stages", fmt::format("all, or names of {}separated by commas", names), base::quoted(name));
    }
    chosen.insert(*stage);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace clearhead::capture
