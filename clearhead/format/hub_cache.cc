// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxReferenceBytes = 4096;
constexpr size_t kMaxSnapshotFiles = 100'000;

// True if text is a path of plain names: nothing empty, ".", "..", no NUL and no backslash.
bool is_plain_path(std::string_view text) {
  if (text.find('\0') != std::string_view::npos || text.find('\\') != std::string_view::npos) return false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool is_commit(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 40 && std::ranges::all_of(text, is_hex);
}

bool is_folder(const fs::path& path) {
  std::error_code missing;
  return fs::is_directory(path, missing);
}

bool is_file(const fs::path& path) {
  std::error_code missing;
  return fs::is_regular_file(path, missing);
}

// A folder named by an environment variable, "~" standing for HOME as the cache's owner has it.
std::optional<fs::path> folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  const char* home = std::getenv("HOME");
  if (home != nullptr && (text == "~" || text.starts_with("~/"))) return fs::path(home + std::string(text.substr(1)));
  return fs::path(text);
}

fs::path repository_folder(const fs::path& cache, const HubName& name) {
  return cache / fmt::format("models--{}--{}", name.organisation, name.name);
}

// The commit that a revision stands for, or nothing if the cache does not know it.
std::optional<std::string> find_commit(const fs::path& repository, const HubName& name) {
  if (is_commit(name.revision)) return name.revision;
  const fs::path reference = repository / "refs" / name.revision;
  if (!is_file(reference)) return std::nullopt;
  std::string text = base::read_file(reference, kMaxReferenceBytes);
  const size_t last = text.find_last_not_of(" \t\r\n");
  text.resize(last == std::string::npos ? 0 : last + 1);
  if (!is_commit(text)) {
    base::fail(base::quoted(reference.string(), 400), "a commit of 40 hex digits", base::quoted(text),
               "the cache is damaged; fetch the model again");
  }
  return text;
}

void check_inside(const fs::path& file, const fs::path& canonical_repository) {
  std::error_code broken;
  const fs::path target = fs::canonical(file, broken);
  if (broken) {
    base::fail(base::quoted(file.string(), 400), "a link to a file in the cache", broken.message(),
               "the download was not finished; fetch the model again");
  }
  const fs::path relative = target.lexically_relative(canonical_repository);
  if (relative.empty() || *relative.begin() == "..") {
    base::fail(base::quoted(file.string(), 400), "a link to a file under the folder of its repository",
               base::quoted(target.string(), 400), "a cache that leads elsewhere is not followed");
  }
}

// No file or folder of the snapshot may lead out of the repository's folder.
void check_snapshot(const fs::path& snapshot, const fs::path& repository) {
  const fs::path canonical_repository = fs::canonical(repository);
  check_inside(snapshot, canonical_repository);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(snapshot)) {
    if (++files > kMaxSnapshotFiles) {
      base::fail(base::quoted(snapshot.string(), 400), fmt::format("at most {} files", kMaxSnapshotFiles), "more");
    }
    check_inside(entry.path(), canonical_repository);
  }
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view repository = text.substr(0, at);
  const size_t slash = repository.find('/');
  if (slash == std::string_view::npos || repository.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
  if (!is_plain_path(repository)) return std::nullopt;
  HubName name{std::string(repository.substr(0, slash)), std::string(repository.substr(slash + 1))};
  if (at != std::string_view::npos) name.revision = text.substr(at + 1);
  if (!is_plain_path(name.revision)) return std::nullopt;
  return name;
}

std::optional<fs::path> hub_cache_folder() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto folder = folder_from(variable)) return folder;
  }
  if (const auto home = folder_from("HF_HOME")) return *home / "hub";
  if (const auto cache = folder_from("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  if (const auto home = folder_from("HOME")) return *home / ".cache" / "huggingface" / "hub";
  return std::nullopt;
}

std::optional<fs::path> find_hub_snapshot(const fs::path& cache, const HubName& name) {
  const fs::path repository = repository_folder(cache, name);
  if (!is_folder(repository)) return std::nullopt;
  const auto commit = find_commit(repository, name);
  if (!commit) return std::nullopt;
  const fs::path snapshot = repository / "snapshots" / *commit;
  if (!is_folder(snapshot)) return std::nullopt;
  check_snapshot(snapshot, repository);
  return snapshot;
}

HubFile find_hub_file(const fs::path& cache, const HubName& name, std::string_view path) {
  if (!is_plain_path(path)) base::refuse("hub cache", "a path inside the repository", base::quoted(path));
  const fs::path repository = repository_folder(cache, name);
  if (!is_folder(repository)) return {};
  const auto commit = find_commit(repository, name);
  if (!commit) return {};
  const fs::path file = repository / "snapshots" / *commit / path;
  std::error_code missing;
  if (fs::exists(fs::symlink_status(file, missing))) {
    check_inside(file, fs::canonical(repository));
    if (is_file(file)) return {HubFileState::found, file};
  }
  if (is_file(repository / ".no_exist" / *commit / path)) return {HubFileState::known_absent, {}};
  return {};
}

}  // namespace clearhead::format
