// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/known_models.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"

namespace clearhead::format {

extern const std::string_view kKnownModelsText;  // made at configure time

namespace {

constexpr size_t kMaxMarkerBytes = 65'536;

Wheel wheel_of(const nlohmann::json& row) {
  return {row.at("package"), row.at("version"), row.at("sha256"), row.at("platform"), row.at("megabytes")};
}

KnownModel model_of(const nlohmann::json& row) {
  KnownModel model{.name = row.at("name"),
                   .description = row.at("description"),
                   .family = row.at("family"),
                   .license = row.at("license"),
                   .terms = row.at("terms"),
                   .needs_license_acceptance = row.at("needs_license_acceptance"),
                   .num_layers = row.at("layers"),
                   .num_heads = row.at("heads"),
                   .num_kv_heads = row.at("kv_heads"),
                   .d_model = row.at("d_model"),
                   .head_dim = row.at("head_dim"),
                   .disk_megabytes = row.at("disk_megabytes"),
                   .main_file = row.at("main_file"),
                   .wheels = {}};
  for (const auto& wheel : row.at("wheels")) model.wheels.push_back(wheel_of(wheel));
  return model;
}

// True if the marker that the fetch writes as its last file names this model and exactly its wheels.
bool marker_agrees(const std::filesystem::path& marker, const KnownModel& model) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(marker, missing)) return false;
  const auto text = nlohmann::json::parse(base::read_file(marker, kMaxMarkerBytes), nullptr, false);
  nlohmann::json expected = nlohmann::json::array();
  for (const Wheel& wheel : model.wheels) expected.push_back(wheel.sha256);
  return text.is_object() && text.value("name", nlohmann::json()) == model.name &&
         text.value("sha256", nlohmann::json()) == expected;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

size_t KnownModel::download_megabytes() const {
  size_t sum = 0;
  for (const Wheel& wheel : wheels) sum += wheel.megabytes;
  return sum;
}

std::span<const KnownModel> known_models() {
  static const std::vector<KnownModel> table = [] {
    std::vector<KnownModel> rows;
    const auto file = nlohmann::json::parse(kKnownModelsText);
    for (const auto& row : file.at("models")) rows.push_back(model_of(row));
    return rows;
  }();
  return table;
}

const KnownModel* find_known_model(std::string_view name) {
  for (const KnownModel& model : known_models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::filesystem::path model_home() {
  if (const char* home = variable("CLEARHEAD_HOME")) return home;
  if (const char* cache = variable("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "clearhead";
  if (const char* home = variable("HOME")) return std::filesystem::path(home) / ".cache" / "clearhead";
  base::fail("models", "a folder for models", "none of CLEARHEAD_HOME, XDG_CACHE_HOME and HOME set",
             "set CLEARHEAD_HOME");
}

std::optional<std::filesystem::path> present(const KnownModel& model) {
  const std::filesystem::path folder = model_home() / "models" / model.name;
  if (!marker_agrees(folder / ".complete", model)) return std::nullopt;
  std::error_code missing;
  if (!std::filesystem::is_regular_file(folder / model.main_file, missing)) return std::nullopt;
  return model.main_file.ends_with(".gguf") ? folder / model.main_file : folder;
}

}  // namespace clearhead::format
