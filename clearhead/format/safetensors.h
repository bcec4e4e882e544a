// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/base/output_file.h"
#include "clearhead/format/safetensors_header.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::format {

// Tensors by name in a safetensors file, read in place. Views stay valid as long as the object (or what it was moved
// into) lives. They need not be aligned: tensor::TensorView::as refuses those, tensor::to_dtype copies them.
class SafetensorsFile {
 public:
  // Maps a file and checks its header. Throws: Error (failure), naming the rule that is broken.
  static SafetensorsFile open(const std::filesystem::path& path, SafetensorsRules rules = {});
  // The same for bytes that came from elsewhere (a pipe); where names them in errors.
  static SafetensorsFile read(std::vector<std::byte> bytes, std::string where, SafetensorsRules rules = {});

  // All tensors, in the order of their bytes.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  bool contains(std::string_view name) const { return header_.find(name) != nullptr; }

  // What the header says about a tensor. Throws: Error (failure) if there is no such tensor.
  const TensorEntry& entry(std::string_view name) const;

  // Throws: Error (failure) if there is no such tensor, or if its type is none of ours; the error names both.
  tensor::TensorView view(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<std::string>& warnings() const { return header_.warnings; }
  // The file that was opened; empty if the bytes came from elsewhere.
  std::filesystem::path path() const { return mapped_ ? mapped_->path() : std::filesystem::path(); }

  // Bytes of all tensors together.
  size_t total_bytes() const { return bytes().size() - header_.data_begin; }

  // Gives the memory of a part of this file, or of all of it, back; its pages are read again when touched. Other bytes
  // are left alone.
  void release_pages(std::span<const std::byte> part) const;
  void release_pages() const { release_pages(bytes()); }

 private:
  SafetensorsFile() = default;
  std::span<const std::byte> bytes() const { return mapped_ ? mapped_->bytes() : std::span<const std::byte>(owned_); }

  std::string where_;
  std::optional<base::MappedFile> mapped_;
  std::vector<std::byte> owned_;
  SafetensorsHeader header_;
};

struct NamedTensor {
  std::string name;
  tensor::TensorView tensor;
};

// Writes tensors with a header that is padded so that the data starts at a multiple of 8. The wider types come first,
// else in the given order, so that every tensor is aligned to its elements. The file appears whole or not at all.
// Throws: Error (usage) if a name occurs twice, is "__metadata__" or is not UTF-8; Error (failure) if the file cannot
// be written.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// A tensor that will be written.
struct PlannedTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  tensor::Shape shape;
};

// A safetensors file whose tensors are written piece by piece, in any order; as write_safetensors writes it. Elements
// that nobody writes are 0.
class SafetensorsOutput {
 public:
  // Throws: as write_safetensors; the room on disk is reserved now.
  SafetensorsOutput(const std::filesystem::path& path, std::span<const PlannedTensor> tensors,
                    const std::map<std::string, std::string>& metadata = {});

  // Writes bytes to tensor index (in the order given), from its byte first on. Several threads may write at once.
  // Throws: Error (usage) if they do not fit into the tensor; Error (failure) if they cannot be written.
  void write(size_t index, size_t first, std::span<const std::byte> bytes);

  // Makes the file appear under its name.
  void commit() { file_.commit(); }

 private:
  struct Place {
    size_t begin, size;  // bytes of the file
  };

  base::OutputFile file_;
  std::vector<Place> places_;  // [tensors]
};

// How many elements are no finite numbers. Types that cannot hold such values count none.
struct NonFinite {
  size_t nans = 0;
  size_t infinities = 0;

  bool operator==(const NonFinite&) const = default;
};
NonFinite count_non_finite(const tensor::TensorView& view);

}  // namespace clearhead::format
