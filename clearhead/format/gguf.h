// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/format/gguf_header.h"
#include "clearhead/tensor/block_type.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::format {

// Tensors by name and metadata in a GGUF file, read in place. Views and metadata stay valid as long as the object (or
// what it was moved into) lives.
class GgufFile {
 public:
  // Maps a file and checks its header. Throws: Error (failure), naming the rule that is broken.
  static GgufFile open(const std::filesystem::path& path);
  // The same for bytes in memory; where names them in errors.
  static GgufFile read(std::vector<std::byte> bytes, std::string where);

  const GgufMetadata& metadata() const { return header_.metadata; }
  // All tensors, in the order of their bytes.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  bool contains(std::string_view name) const { return header_.find(name) != nullptr; }
  const std::vector<std::string>& warnings() const { return header_.warnings; }
  // The file that was opened; empty if the bytes came from elsewhere.
  std::filesystem::path path() const { return mapped_ ? mapped_->path() : std::filesystem::path(); }

  // What the header says about a tensor. Throws: Error (failure) if there is no such tensor.
  const TensorEntry& entry(std::string_view name) const;

  // A tensor of F32, F16 or BF16. Throws: Error (failure) if there is none of that name or it is of another type.
  tensor::TensorView view(std::string_view name) const;
  // A tensor of a block type. Throws: likewise.
  tensor::BlockView blocks(std::string_view name) const;

  // Gives the memory of a part of this file, or of all of it, back; its pages are read again when touched. Other bytes
  // are left alone.
  void release_pages(std::span<const std::byte> part) const;
  void release_pages() const { release_pages(bytes()); }

 private:
  GgufFile() = default;
  std::span<const std::byte> bytes() const { return mapped_ ? mapped_->bytes() : std::span<const std::byte>(owned_); }
  std::span<const std::byte> data_of(const TensorEntry& entry) const;

  std::string where_;
  std::optional<base::MappedFile> mapped_;
  std::vector<std::byte> owned_;
  GgufHeader header_;
};

// A model in one file, or the parts of one that was split: NAME-00001-of-00003.gguf and so on in one folder. path is
// the file or the first part, which has the metadata.
// Throws: Error (failure) if path is another part, if a part is missing or belongs elsewhere, or if a tensor stands in
// two of them.
std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& path);

constexpr size_t kMaxGgufParts = 4096;

}  // namespace clearhead::format
