// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::base {
namespace {

// An open file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) fail(quoted(path.string(), 400), "a readable file", std::strerror(errno));
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status;
  if (::fstat(file.value(), &status) != 0) fail(quoted(path.string(), 400), "a readable file", std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail(quoted(path.string(), 400), "a regular file", "something else (folder, pipe or device)");
  return static_cast<size_t>(status.st_size);
}

// Bytes up to a whole number of kAlignment.
size_t whole_lines(size_t bytes) {
  constexpr size_t kLine = AlignedBuffer::kAlignment;
  if (bytes > SIZE_MAX - kLine) throw std::bad_alloc();
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const size_t rounded = whole_lines(bytes);
  if (rounded >= kMappedFrom) {
    *this = mapped(bytes);
    return;
  }
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, rounded);
}

AlignedBuffer AlignedBuffer::mapped(size_t bytes) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  const size_t rounded = whole_lines(bytes);
  buffer.data_ = {map_pages(rounded), Free(rounded, nullptr)};
  buffer.size_ = bytes;
  return buffer;
}

AlignedBuffer AlignedBuffer::lasting(size_t bytes) {
  if (bytes < kTogetherFrom || bytes >= kMappedFrom) return AlignedBuffer(bytes);
  SlabPlace place = take_from_slab(whole_lines(bytes));
  AlignedBuffer buffer;
  buffer.data_ = {place.begin, Free(0, std::move(place.slab))};
  buffer.size_ = bytes;
  return buffer;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  data_ = std::move(other.data_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void AlignedBuffer::Free::operator()(std::byte* data) const {
  if (mapped != 0) return unmap_pages(data, mapped);
  if (!slab) std::free(data);
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(path);
  size_ = regular_file_size(file, path);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (mapped == MAP_FAILED) fail(quoted(path.string(), 400), "a file that can be mapped", std::strerror(errno));
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release_pages(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, size_t max_bytes) {
  const Descriptor file(path);
  const size_t size = regular_file_size(file, path);
  if (size > max_bytes) {
    fail(quoted(path.string(), 400), fmt::format("at most {} bytes", max_bytes), fmt::format("{} bytes", size));
  }
  std::string content(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t got = ::read(file.value(), content.data() + at, size - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(quoted(path.string(), 400), "a readable file", std::strerror(errno));
    if (got == 0) fail(quoted(path.string(), 400), fmt::format("{} bytes", size), fmt::format("an end after {}", at));
    at += static_cast<size_t>(got);
  }
  return content;
}

}  // namespace clearhead::base
