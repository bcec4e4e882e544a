// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

#include "clearhead/base/memory.h"

namespace clearhead::tests {

// Changes a text as broken disks and hostile hands do: bits, numbers near the ends of their range, marks of JSON.
// Half of the changes fall into the first and last bytes, where counts and sizes stand.
inline void mutate(std::string& text, std::mt19937& random) {
  constexpr size_t kEnds = 512;
  constexpr uint64_t kTelling[] = {0, 1, 0x7fffffffffffffff, 0x8000000000000000, ~uint64_t{0}, uint64_t{1} << 40};
  constexpr char kMarks[] = "\"{}[],:0-9\\e.\0\xff";
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    size_t at = random() % text.size();
    if (random() % 2 == 0) {
      const size_t near = random() % std::min(kEnds, text.size());
      at = random() % 2 == 0 ? near : text.size() - 1 - near;
    }
    switch (random() % 4) {
      case 0:
        if (text.size() >= 8) std::memcpy(text.data() + std::min(at, text.size() - 8), &kTelling[random() % 6], 8);
        break;
      case 1: text[at] = kMarks[random() % (sizeof kMarks - 1)]; break;
      default: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    }
  }
}

// A copy of a large file whose header alone is written: what is behind it is a hole, which takes no room and reads as
// 0. The header can be written anew, and the file cut off.
class SparseCopy {
 public:
  // header: bytes of the file that are copied.
  SparseCopy(const std::filesystem::path& original, const std::filesystem::path& copy, size_t header)
      : path_(copy), size_(std::filesystem::file_size(original)), header_(header, '\0') {
    std::ifstream file(original, std::ios::binary);
    if (!file.read(header_.data(), static_cast<std::streamsize>(header))) {
      throw std::runtime_error("cannot read the header of " + original.string());
    }
    const std::ofstream made(copy, std::ios::binary);
    written_.resize(header, '\0');  // a hole reads as 0
    write(header_, size_);
  }

  const std::string& header() const { return header_; }  // as the original has it
  size_t size() const { return size_; }

  // Another header of the same length, in a file of that size. Only what has changed is written.
  void write(const std::string& header, size_t size) {
    constexpr size_t kBlock = 4096;
    std::fstream file(path_, std::ios::binary | std::ios::out | std::ios::in);
    for (size_t at = 0; at < header.size(); at += kBlock) {
      const size_t count = std::min(kBlock, header.size() - at);
      if (header.compare(at, count, written_, at, count) == 0) continue;
      file.seekp(static_cast<std::streamoff>(at)).write(header.data() + at, static_cast<std::streamsize>(count));
    }
    if (!file.flush()) throw std::runtime_error("cannot write " + path_.string());
    std::filesystem::resize_file(path_, size);
    written_ = header;
    if (size < written_.size()) std::fill(written_.begin() + static_cast<std::ptrdiff_t>(size), written_.end(), '\0');
  }

 private:
  std::filesystem::path path_;
  size_t size_;
  std::string header_, written_;  // of the original; as the copy has it
};

}  // namespace clearhead::tests
