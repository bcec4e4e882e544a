// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clearhead/format/gguf.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::format {

// A model on disk: its tensors by name, whatever files they lie in, and the files that stand beside them. Views stay
// valid as long as the object (or what it was moved into) lives.
class Checkpoint {
 public:
  // Opens a folder with model.safetensors or model.safetensors.index.json, a single .safetensors file, or a .gguf file
  // or the first of several.
  // Throws: Error (failure) if there is neither, if a file is damaged, or if the index names a file outside the folder
  // or a tensor that its file does not have.
  static Checkpoint open(const std::filesystem::path& folder_or_file);

  // Names of all tensors, sorted.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  // What the file's header says about a tensor. Throws: Error (failure) if there is no such tensor.
  const TensorEntry& entry(std::string_view name) const;

  // Throws: Error (failure) if there is no such tensor or its type is none of ours; the error names both.
  tensor::TensorView view(std::string_view name) const;
  // A tensor whose entry has a block_type. Throws: Error (failure) if there is no such tensor or it is of another type.
  tensor::BlockView blocks(std::string_view name) const;

  // What a GGUF file says about itself; null for other files.
  const GgufMetadata* gguf_metadata() const;

  // The folder that holds the files.
  const std::filesystem::path& folder() const { return folder_; }
  // What was opened, the folder or the file, as errors name it.
  const std::string& where() const { return where_; }

  // Text of config.json. Throws: Error (failure) if it is absent or larger than kMaxConfigBytes.
  std::string config_json() const;
  // Text of another file in the folder; nothing if there is none. Throws: Error (failure) if it cannot be read or is
  // larger than kMaxConfigBytes.
  std::optional<std::string> file_beside(std::string_view name) const;
  // Path of tokenizer.json. Throws: Error (failure) if it is absent.
  std::filesystem::path tokenizer_path() const;

  // Every file that is read of the model: those with tensors, and the index, config.json and tokenizer.json if they
  // are there.
  std::vector<std::filesystem::path> files() const;

  // Bytes of all tensors.
  size_t total_bytes() const;
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Gives the memory of a part of this checkpoint's files, or of all of them, back; its pages are read again when
  // touched.
  void release_pages(std::span<const std::byte> part) const;
  void release_pages() const;

  static constexpr size_t kMaxConfigBytes = 16'000'000;
  static constexpr size_t kMaxIndexBytes = 64'000'000;
  static constexpr size_t kMaxShards = 4096;

 private:
  using File = std::variant<SafetensorsFile, GgufFile>;

  Checkpoint() = default;
  void add_single(const std::filesystem::path& file);
  void add_shards(const std::filesystem::path& index);
  void add_gguf(const std::filesystem::path& file);
  const File* find(std::string_view name) const;
  const File& get(std::string_view name) const;

  std::filesystem::path folder_;
  std::string where_;
  std::vector<File> files_;         // all of one kind
  std::vector<std::string> names_;  // sorted
  std::vector<size_t> file_of_;     // same order: place in files_
  std::vector<std::string> warnings_;
};

}  // namespace clearhead::format
