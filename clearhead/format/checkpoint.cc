// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"

namespace clearhead::format {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxIndexDepth = 16;
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kConfigName = "config.json";
constexpr const char* kTokenizerName = "tokenizer.json";

bool is_file(const fs::path& path) {
  std::error_code missing;
  return fs::is_regular_file(path, missing);
}

// "model-00001-of-00002", but not the one part of one.
bool is_name_of_a_part(std::string_view stem) {
  constexpr std::string_view kPattern = "-00000-of-00000", kWhole = "-00001-of-00001";
  if (stem.size() < kPattern.size()) return false;
  const std::string_view ending = stem.substr(stem.size() - kPattern.size());
  const bool fits = std::ranges::equal(ending, kPattern, [](char found, char wanted) {
    return wanted == '0' ? found >= '0' && found <= '9' : found == wanted;
  });
  return fits && ending != kWhole;
}

// A name that can only mean a file in the same folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of("/\\") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Parses JSON in which no object may have a key twice.
nlohmann::json parse_strictly(const std::string& text, std::string_view where) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Event event, nlohmann::json& parsed) {
    if (depth > kMaxIndexDepth) base::fail(where, fmt::format("JSON nested at most {} deep", kMaxIndexDepth), "deeper");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
      base::fail(where, "each key once", base::quoted(parsed.get_ref<const std::string&>()) + " again");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::parse_error& error) {
    base::fail(where, "JSON", fmt::format("a mistake at byte {}", error.byte), "the file is damaged");
  }
}

// The weight_map of an index: name of a tensor -> name of a file in the same folder.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const std::string where = base::quoted(index.string(), 400);
  const nlohmann::json file = parse_strictly(base::read_file(index, Checkpoint::kMaxIndexBytes), where);
  if (!file.is_object() || !file.contains("weight_map") || !file["weight_map"].is_object()) {
    base::fail(where, "an object with a weight_map", "none");
  }
  std::map<std::string, std::string> map;
  for (const auto& [name, shard] : file["weight_map"].items()) {
    const std::string entry = fmt::format("{}, tensor {}", where, base::quoted(name));
    if (!shard.is_string()) base::fail(entry, "the name of a file", "something that is no string");
    const auto& shard_name = shard.get_ref<const std::string&>();
    if (!is_plain_name(shard_name)) {
      base::fail(entry, "the plain name of a file in the same folder", base::quoted(shard_name));
    }
    map.emplace(name, shard_name);
  }
  if (map.empty()) base::fail(where, "a weight_map that names tensors", "an empty one");
  return map;
}

// Refuses an index of whose files some are not there.
void check_presence(const std::map<std::string, std::string>& weight_map, const fs::path& index) {
  std::set<std::string> named, missing;
  std::error_code unreadable;
  for (const auto& [name, shard] : weight_map) {
    if (!named.insert(shard).second) continue;
    if (!fs::exists(index.parent_path() / shard, unreadable)) missing.insert(shard);
  }
  if (missing.empty()) return;
  base::fail(base::quoted(index.string(), 400), fmt::format("the {} files it names beside it", named.size()),
             fmt::format("{} missing, {}{}", missing.size(), missing.size() == 1 ? "" : "the first ",
                         base::quoted(*missing.begin())),
             "bring all files of the model into one folder");
}

[[noreturn]] void fail_without_parameters(const fs::path& folder) {
  std::string found = "neither";
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) {
      found = fmt::format("only {}", base::quoted(name));
    }
  }
  const bool pickle = found != "neither";
  base::fail(base::quoted(folder.string(), 400), "model.safetensors or model.safetensors.index.json", found,
             pickle ? "save the model in the safetensors format; files that run code when read are not opened" : "");
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder_or_file) {
  Checkpoint checkpoint;
  checkpoint.where_ = base::quoted(folder_or_file.string(), 400);
  const std::string& where = checkpoint.where_;
  std::error_code missing;
  if (fs::is_directory(folder_or_file, missing)) {
    checkpoint.folder_ = folder_or_file;
    const fs::path single = folder_or_file / "model.safetensors", index = folder_or_file / kIndexName;
    if (is_file(single)) {
      checkpoint.add_single(single);
    } else if (is_file(index)) {
      checkpoint.add_shards(index);
    } else {
      fail_without_parameters(folder_or_file);
    }
    return checkpoint;
  }
  if (!fs::exists(folder_or_file, missing)) base::fail(where, "a folder or file with a model", "nothing there");
  checkpoint.folder_ = folder_or_file.has_parent_path() ? folder_or_file.parent_path() : fs::path(".");
  if (folder_or_file.extension() == ".gguf") {
    checkpoint.add_gguf(folder_or_file);
  } else if (folder_or_file.extension() == ".safetensors") {
    checkpoint.add_single(folder_or_file);
  } else {
    base::fail(where, "a folder or a .safetensors or .gguf file", "a file of another name");
  }
  return checkpoint;
}

void Checkpoint::add_single(const fs::path& file) {
  SafetensorsFile opened = SafetensorsFile::open(file);
  for (const TensorEntry& each : opened.entries()) names_.push_back(each.name);
  std::ranges::sort(names_);
  file_of_.assign(names_.size(), 0);
  warnings_ = opened.warnings();
  files_.emplace_back(std::move(opened));
}

void Checkpoint::add_gguf(const fs::path& file) {
  std::map<std::string, size_t> places;  // name of a tensor -> place in files_
  for (GgufFile& part : open_gguf_parts(file)) {
    for (const TensorEntry& each : part.entries()) places.emplace(each.name, files_.size());
    warnings_.insert(warnings_.end(), part.warnings().begin(), part.warnings().end());
    files_.emplace_back(std::move(part));
  }
  for (auto& [name, place] : places) {
    names_.push_back(name);
    file_of_.push_back(place);
  }
}

void Checkpoint::add_shards(const fs::path& index) {
  const auto weight_map = read_weight_map(index);
  check_presence(weight_map, index);
  std::vector<SafetensorsFile> files;
  std::map<std::string, size_t> places;  // file name -> place in files
  for (const auto& [name, shard] : weight_map) {
    const auto [place, is_new] = places.emplace(shard, files.size());
    if (is_new) {
      if (files.size() == kMaxShards) {
        base::fail(base::quoted(index.string(), 400), fmt::format("at most {} files", kMaxShards), "more");
      }
      files.push_back(SafetensorsFile::open(folder_ / shard));
    }
    if (!files[place->second].contains(name)) {
      base::fail(fmt::format("{}, tensor {}", base::quoted(index.string(), 400), base::quoted(name)),
                 fmt::format("it in {}", base::quoted(shard)), "no tensor of that name there",
                 "the index and its files do not belong together");
    }
    names_.push_back(name);
    file_of_.push_back(place->second);
  }
  size_t in_files = 0;
  for (const SafetensorsFile& file : files) {
    in_files += file.entries().size();
    warnings_.insert(warnings_.end(), file.warnings().begin(), file.warnings().end());
  }
  if (in_files > names_.size()) {
    warnings_.push_back(fmt::format("{}: {} tensors of the files are not in the index and are ignored",
                                    base::quoted(index.string(), 400), in_files - names_.size()));
  }
  for (SafetensorsFile& file : files) files_.emplace_back(std::move(file));
}

const Checkpoint::File* Checkpoint::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(names_, name);
  if (place == names_.end() || *place != name) return nullptr;
  return &files_[file_of_[static_cast<size_t>(place - names_.begin())]];
}

const Checkpoint::File& Checkpoint::get(std::string_view name) const {
  if (const File* file = find(name)) return *file;
  const fs::path path = std::visit([](const auto& file) { return file.path(); }, files_.front());
  const bool is_part = files_.size() == 1 && is_name_of_a_part(path.stem().string());
  base::fail(
      where_, fmt::format("a tensor {}", base::quoted(name)),
      fmt::format("{} tensors, none of that name", names_.size()),
      is_part ? fmt::format("{} is one part of a split model: name its folder", base::quoted(path.filename().string()))
              : std::string());
}

tensor::TensorView Checkpoint::view(std::string_view name) const {
  return std::visit([&](const auto& file) { return file.view(name); }, get(name));
}

tensor::BlockView Checkpoint::blocks(std::string_view name) const {
  if (const auto* file = std::get_if<GgufFile>(&get(name))) return file->blocks(name);
  base::fail(where_, fmt::format("blocks as the type of {}", base::quoted(name)), entry(name).dtype_name);
}

const TensorEntry& Checkpoint::entry(std::string_view name) const {
  return std::visit([&](const auto& file) -> const TensorEntry& { return file.entry(name); }, get(name));
}

const GgufMetadata* Checkpoint::gguf_metadata() const {
  const auto* first = std::get_if<GgufFile>(&files_.front());
  return first == nullptr ? nullptr : &first->metadata();
}

std::string Checkpoint::config_json() const {
  const fs::path path = folder_ / kConfigName;
  if (!is_file(path)) {
    base::fail(base::quoted(folder_.string(), 400), "config.json beside the parameters", "none",
               "it says how the model is built and comes with the model");
  }
  return base::read_file(path, kMaxConfigBytes);
}

std::optional<std::string> Checkpoint::file_beside(std::string_view name) const {
  const fs::path path = folder_ / name;
  std::error_code missing;
  if (!fs::exists(path, missing)) return std::nullopt;
  return base::read_file(path, kMaxConfigBytes);
}

fs::path Checkpoint::tokenizer_path() const {
  const fs::path path = folder_ / kTokenizerName;
  if (!is_file(path)) {
    base::fail(base::quoted(folder_.string(), 400), "tokenizer.json beside the parameters", "none",
               "it comes with the model");
  }
  return path;
}

std::vector<fs::path> Checkpoint::files() const {
  std::vector<fs::path> files;
  for (const File& each : files_) files.push_back(std::visit([](const auto& file) { return file.path(); }, each));
  if (gguf_metadata() != nullptr) return files;  // which has all within
  for (const char* name : {kIndexName, kConfigName, kTokenizerName}) {
    if (is_file(folder_ / name)) files.push_back(folder_ / name);
  }
  return files;
}

size_t Checkpoint::total_bytes() const {
  size_t sum = 0;
  for (const std::string& name : names_) sum += entry(name).bytes();
  return sum;
}

void Checkpoint::release_pages(std::span<const std::byte> part) const {
  for (const File& each : files_) std::visit([&](const auto& file) { file.release_pages(part); }, each);
}

void Checkpoint::release_pages() const {
  for (const File& each : files_) std::visit([](const auto& file) { file.release_pages(); }, each);
}

}  // namespace clearhead::format
