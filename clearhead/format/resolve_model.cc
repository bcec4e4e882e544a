// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/format/hub_cache.h"
#include "clearhead/format/known_models.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNearBytes = 64;  // longer texts are compared with no name

// Fewest insertions, deletions and replacements of a byte that make b of a.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Advice with the known names that look like what was asked for, or with all of them.
std::string near_names(std::string_view asked) {
  std::vector<std::string> near, all;
  for (const KnownModel& model : known_models()) {
    all.push_back(model.name);
    if (asked.empty() || asked.size() > kMaxNearBytes) continue;
    const bool part = asked.size() >= 3 && model.name.find(asked) != std::string::npos;
    if (part || edit_distance(asked, model.name) <= 1 + model.name.size() / 4) near.push_back(model.name);
  }
  if (!near.empty()) return fmt::format("did you mean {}", fmt::join(near, " or "));
  return fmt::format("known models are {}", fmt::join(all, ", "));
}

bool is_model_file(const fs::path& path) { return path.extension() == ".safetensors" || path.extension() == ".gguf"; }

ResolvedModel resolve_known(const KnownModel& model) {
  if (const auto path = present(model)) return {model.name, *path};
  base::fail(fmt::format("model {}", base::quoted(model.name)), "a fetched model",
             fmt::format("none at {}", base::quoted((model_home() / "models" / model.name).string(), 400)),
             fmt::format("fetch it with: clearhead fetch {}{}", model.name,
                         model.needs_license_acceptance ? " --accept-license" : ""));
}

ResolvedModel resolve_path(const fs::path& path) {
  const std::string where = fmt::format("model {}", base::quoted(path.string(), 400));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (!fs::exists(path / "config.json", ignored)) {
      base::fail(where, "a folder with config.json and model.safetensors", "a folder without config.json");
    }
    fs::path name = path.filename();
    if (name.empty()) name = path.parent_path().filename();
    return {name.string(), path};
  }
  if (!is_model_file(path)) {
    base::fail(where, "a .safetensors or .gguf file, or a folder with config.json", "a file of another name");
  }
  return {path.stem().string(), path};
}

}  // namespace

ResolvedModel resolve_model(std::string_view name_or_path) {
  if (const KnownModel* model = find_known_model(name_or_path)) return resolve_known(*model);
  const fs::path path(name_or_path);
  std::error_code missing;
  const bool has_nul = name_or_path.find('\0') != std::string_view::npos;
  if (!has_nul && !name_or_path.empty() && fs::exists(path, missing)) return resolve_path(path);

  std::string tried = "no known model and no file or folder of that name";
  const auto hub_name = parse_hub_name(name_or_path);
  const auto cache = hub_cache_folder();
  if (hub_name && cache) {
    if (const auto snapshot = find_hub_snapshot(*cache, *hub_name)) return {hub_name->text(), *snapshot};
    tried += fmt::format(", nor {} at revision {} in the hub cache {}", base::quoted(hub_name->text()),
                         base::quoted(hub_name->revision), base::quoted(cache->string(), 400));
  }
  base::fail(fmt::format("model {}", base::quoted(name_or_path, 400)),
             "a known model, a folder with config.json, a .safetensors or .gguf file, or org/name in the hub cache",
             tried, near_names(name_or_path));
}

}  // namespace clearhead::format
