// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/gguf.h"

#include <fmt/format.h>

#include <bit>
#include <functional>
#include <set>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::format {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian and are used in place");

namespace {

namespace fs = std::filesystem;

// "-00002-of-00003.gguf"
std::string part_ending(size_t part, size_t parts) { return fmt::format("-{:05}-of-{:05}.gguf", part + 1, parts); }

// The number of parts that the first says it has; 1 if it says nothing.
size_t parts_of(const GgufFile& first) { return first.metadata().find_count("split.count").value_or(1); }

// Opens part number part of parts, named by the first, and checks that it says so itself.
GgufFile open_part(const fs::path& path, size_t part, size_t parts, std::string_view first) {
  std::error_code missing;
  if (!fs::exists(path, missing)) {
    base::fail(
        first,
        fmt::format("part {} of its {} parts beside it, {}", part + 1, parts, base::quoted(path.filename().string())),
        "no file of that name", "bring all parts of the model into one folder");
  }
  GgufFile file = GgufFile::open(path);
  const size_t no = file.metadata().find_count("split.no").value_or(0), count = parts_of(file);
  if (no != part || count != parts) {
    base::fail(base::quoted(path.string(), 400), fmt::format("part {} of {}", part + 1, parts),
               fmt::format("part {} of {}", no + 1, count), "the files do not belong together");
  }
  return file;
}

void check_names(std::span<const GgufFile> parts, std::string_view where) {
  std::set<std::string_view> names;
  for (const GgufFile& part : parts) {
    for (const TensorEntry& entry : part.entries()) {
      if (names.insert(entry.name).second) continue;
      base::fail(fmt::format("{}, tensor {}", where, base::quoted(entry.name)), "it in one part", "it in two");
    }
  }
  const auto expected = parts[0].metadata().find_count("split.tensors.count");
  if (expected && *expected != names.size()) {
    base::fail(where, fmt::format("{} tensors in all parts together", *expected), fmt::format("{}", names.size()),
               "the files do not belong together");
  }
}

}  // namespace

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile file;
  file.where_ = base::quoted(path.string(), 400);
  file.mapped_.emplace(path);
  file.header_ = parse_gguf_header(file.bytes(), file.where_);
  return file;
}

GgufFile GgufFile::read(std::vector<std::byte> bytes, std::string where) {
  GgufFile file;
  file.where_ = std::move(where);
  file.owned_ = std::move(bytes);
  file.header_ = parse_gguf_header(file.bytes(), file.where_);
  return file;
}

const TensorEntry& GgufFile::entry(std::string_view name) const {
  const TensorEntry* found = header_.find(name);
  if (found == nullptr) {
    base::fail(where_, fmt::format("a tensor {}", base::quoted(name)),
               fmt::format("{} tensors, none of that name", entries().size()));
  }
  return *found;
}

std::span<const std::byte> GgufFile::data_of(const TensorEntry& entry) const {
  return bytes().subspan(header_.data_begin + entry.begin, entry.bytes());
}

tensor::TensorView GgufFile::view(std::string_view name) const {
  const TensorEntry& declared = entry(name);
  if (!declared.dtype) {
    base::fail(fmt::format("{}, tensor {}", where_, base::quoted(name)), "one of the types F32, F16, BF16",
               declared.dtype_name);
  }
  return {*declared.dtype, declared.shape, data_of(declared)};
}

tensor::BlockView GgufFile::blocks(std::string_view name) const {
  const TensorEntry& declared = entry(name);
  if (!declared.block_type) {
    base::fail(fmt::format("{}, tensor {}", where_, base::quoted(name)), "a type of blocks", declared.dtype_name);
  }
  return {*declared.block_type, declared.shape, data_of(declared)};
}

void GgufFile::release_pages(std::span<const std::byte> part) const {
  const auto all = bytes();
  const std::less_equal<const std::byte*> not_after;
  const bool mine = not_after(all.data(), part.data()) && not_after(part.data() + part.size(), all.data() + all.size());
  if (mapped_ && mine) mapped_->release_pages(part);
}

std::vector<GgufFile> open_gguf_parts(const fs::path& path) {
  const std::string where = base::quoted(path.string(), 400);
  std::vector<GgufFile> files;
  files.push_back(GgufFile::open(path));
  const size_t parts = parts_of(files[0]);
  if (parts > kMaxGgufParts)
    base::fail(where, fmt::format("at most {} parts", kMaxGgufParts), fmt::format("{}", parts));
  if (const size_t no = files[0].metadata().find_count("split.no").value_or(0); no != 0) {
    base::fail(where, "the first part of a split model, which has its metadata", fmt::format("part {}", no + 1),
               "name the file that ends in " + part_ending(0, parts));
  }
  if (parts > 1) {
    const std::string name = path.filename().string(), ending = part_ending(0, parts);
    if (!name.ends_with(ending)) {
      base::fail(where, fmt::format("a name that ends in {}, as the first of {} parts has", ending, parts),
                 "another name", "the others are found by their names");
    }
    const std::string stem = name.substr(0, name.size() - ending.size());
    for (size_t part = 1; part < parts; ++part) {
      files.push_back(open_part(path.parent_path() / (stem + part_ending(part, parts)), part, parts, where));
    }
  }
  check_names(files, where);
  return files;
}

}  // namespace clearhead::format
