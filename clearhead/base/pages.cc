// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>

namespace clearhead::base {
namespace {

constexpr size_t kSlabBytes = size_t{64} << 20;  // of address space: memory is taken as it is filled

std::byte* map_anywhere(size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped);
}

}  // namespace

std::byte* map_pages(size_t bytes) {
  if (bytes <= kLargePage) return map_anywhere(bytes);
  if (bytes > SIZE_MAX - 2 * kLargePage) throw std::bad_alloc();
  // Whole pages of the system, so that what is cut off around them is whole ones too.
  constexpr size_t kPage = 4096;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  std::byte* const all = map_anywhere(rounded + kLargePage);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(all) % kLargePage) % kLargePage;
  std::byte* const begin = all + before;
  if (before > 0) ::munmap(all, before);
  if (before < kLargePage) ::munmap(begin + rounded, kLargePage - before);
  ::madvise(begin, rounded, MADV_HUGEPAGE);  // without it everything is as well, only slower
  return begin;
}

void unmap_pages(std::byte* begin, size_t bytes) { ::munmap(begin, bytes); }

Slab::Slab(size_t bytes) : begin_(map_pages(bytes)), size_(bytes) {}
Slab::~Slab() { unmap_pages(begin_, size_); }

std::byte* Slab::take(size_t bytes) {
  if (bytes > size_ - used_) return nullptr;
  std::byte* const place = begin_ + used_;
  used_ += bytes;
  return place;
}

SlabPlace take_from_slab(size_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Slab> current;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<Slab> slab = current.lock();
  std::byte* begin = slab ? slab->take(bytes) : nullptr;
  if (begin == nullptr) {
    slab = std::make_shared<Slab>(std::max(bytes, kSlabBytes));
    begin = slab->take(bytes);
    current = slab;
  }
  return {std::move(slab), begin};
}

}  // namespace clearhead::base
