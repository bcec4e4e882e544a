// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "clearhead/base/pages.h"

namespace clearhead::base {

// Owned bytes aligned to 64 (a cache line, the widest SIMD register), all zero at first. Movable; empty when moved
// from. From kMappedFrom bytes on they are pages of their own, which go back to the system at the end: large buffers
// leave no holes behind. Throws: std::bad_alloc.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMappedFrom = size_t{8} << 20, kTogetherFrom = size_t{64} << 10;

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);
  // Pages of their own however few bytes there are: what is never touched takes no memory.
  static AlignedBuffer mapped(size_t bytes);
  // For what stays as long as others of its kind, such as the parameters of a model: from kTogetherFrom bytes on they
  // stand one behind the other in large pages, and go back to the system together with the last of them.
  static AlignedBuffer lasting(size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    Free() : Free(0, nullptr) {}
    Free(size_t bytes, std::shared_ptr<Slab> place) : mapped(bytes), slab(std::move(place)) {}
    size_t mapped;               // bytes of pages of their own
    std::shared_ptr<Slab> slab;  // or where it stands; else it is from the heap
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

// A whole file, mapped read-only. Movable; the bytes stay where they are for the life of the object.
// Throws: Error if the file cannot be opened, is no regular file or cannot be mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Gives the pages wholly inside part back to the system; they are read again from the file when touched.
  void release_pages(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Bytes of a file that cannot or need not be mapped (small JSON files). Throws: Error, also if larger than max_bytes.
std::string read_file(const std::filesystem::path& path, size_t max_bytes);

}  // namespace clearhead::base
