// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace clearhead::base {

// To be called before an output is written: throws Error (usage) if path is one of the files that are read, under
// whatever name or link.
void refuse_to_replace(std::string_view where, const std::filesystem::path& path,
                       std::span<const std::filesystem::path> inputs);

// A file that appears whole or not at all: written beside its place under another name, flushed to disk and
// renamed by commit(). Without commit() the destructor removes what was written, an older file stays untouched. A
// symbolic link stays one: what it points to is replaced, or made if it is not there yet.
// Throws: Error naming the path (no such folder, disk full, a device or a pipe, ...).
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Gives the file its size before it is written in any order; what is not written is 0. Reserves the room on disk.
  void resize(size_t bytes);
  // Writes at a place; several threads may do so at once.
  void write_at(size_t place, std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* expected) const;

  std::filesystem::path path_, beside_;
  int descriptor_ = -1;
};

}  // namespace clearhead::base
