// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/gguf_header.h"
#include "clearhead/model/families/family.h"
#include "tests/support/mutations.h"
#include "tests/support/temporary_folder.h"

// Headers of real model files, changed a thousand times: each is refused or read.
namespace clearhead::model::mutations {

inline constexpr size_t kMutations = 1000, kLoads = 2;

// Reads the first and last byte of every tensor: a header that was believed wrongly ends the process here.
inline void touch(const format::Checkpoint& checkpoint) {
  unsigned sum = 0;
  for (const std::string& name : checkpoint.names()) {
    const format::TensorEntry& entry = checkpoint.entry(name);
    if (!entry.dtype && !entry.block_type) continue;
    const auto bytes = entry.block_type ? checkpoint.blocks(name).bytes : checkpoint.view(name).bytes();
    ASSERT_EQ(bytes.size(), entry.bytes()) << name;
    if (!bytes.empty()) sum += std::to_integer<unsigned>(bytes.front()) + std::to_integer<unsigned>(bytes.back());
  }
  EXPECT_LE(sum, 510 * checkpoint.names().size());
}

// Some file systems write a file to disk at once when it is cut to nothing and filled again.
inline void write_anew(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  tests::write_bytes(path, bytes);
}

// Opens the file, touches all, reads its config, and loads and runs it where asked for. True if it could be opened.
inline bool open(const std::filesystem::path& path, bool load) {
  try {
    const auto checkpoint = std::make_shared<const format::Checkpoint>(format::Checkpoint::open(path));
    touch(*checkpoint);
    try {
      read_model_config(*checkpoint);
      if (load) load_model(checkpoint).transformer.run({std::vector<int64_t>{0, 3, 1}, {}});
    } catch (const base::Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
    return true;
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    return false;
  }
}

// original: a file with a header of so many bytes; name: of the copy in folder; path: what is opened.
inline void expect_refused_or_read(const std::filesystem::path& original, size_t header,
                                   const std::filesystem::path& copy, const std::filesystem::path& path) {
  tests::SparseCopy sparse(original, copy, header);
  EXPECT_TRUE(open(path, true));
  std::mt19937 random(20267);
  size_t opened = 0, loads = 0;
  for (size_t i = 0; i < kMutations; ++i) {
    std::string text = sparse.header();
    size_t size = sparse.size();
    if (i % 8 == 7) {
      size = i % 16 == 7 ? random() % header : random() % size;
    } else {
      tests::mutate(text, random);
    }
    sparse.write(text, size);
    const bool load = loads < kLoads && i % 50 == 0;
    if (!open(path, load)) continue;
    ++opened;
    loads += load;
  }
  EXPECT_GT(opened, kMutations / 100);
  EXPECT_LT(opened, kMutations - kMutations / 100);
}

inline void expect_gguf(const std::filesystem::path& original) {
  const tests::TemporaryFolder folder;
  const base::MappedFile file(original);
  const size_t header = format::parse_gguf_header(file.bytes(), "m").data_begin;
  expect_refused_or_read(original, header, folder / "m.gguf", folder / "m.gguf");
}

}  // namespace clearhead::model::mutations
