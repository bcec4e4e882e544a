// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace clearhead::format {

// A repository of models and a state of it.
struct HubName {
  std::string organisation, name;
  std::string revision = "main";  // a branch, a tag or a commit of 40 hex digits

  std::string text() const { return organisation + "/" + name; }
  bool operator==(const HubName&) const = default;
};

// Reads org/name or org/name@revision; nothing if the text does not have that form. Nothing too if a part could lead
// out of the cache (an empty part, "..", a backslash, a NUL, a leading slash).
std::optional<HubName> parse_hub_name(std::string_view text);

// The folder of the Hugging Face cache: $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, else
// $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Nothing if no variable is set, HOME included.
std::optional<std::filesystem::path> hub_cache_folder();

// What the cache knows about a file of a repository.
enum class HubFileState {
  found,
  known_absent,  // looked for before, the repository does not have it
  unknown,       // never fetched
};
struct HubFile {
  HubFileState state = HubFileState::unknown;
  std::filesystem::path path;  // in the snapshot, for found
};

// The folder of the snapshot that a name stands for, or nothing if it is not in the cache. The cache is only read.
// Throws: Error (failure) if a reference is no commit, or if a file of the snapshot leads out of the repository's
// folder.
// Source: the cache layout that huggingface_hub documents.
std::optional<std::filesystem::path> find_hub_snapshot(const std::filesystem::path& cache, const HubName& name);

// One file of a snapshot; path as it is in the repository. Throws: as find_hub_snapshot; Error (usage) for a path that
// could lead out.
HubFile find_hub_file(const std::filesystem::path& cache, const HubName& name, std::string_view path);

}  // namespace clearhead::format
