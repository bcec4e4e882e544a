// SPDX-License-Identifier: Apache-2.0
// In a file of its own, so that the compiler does not see a new and its delete together. The linker hands calls of
// aligned_alloc and mmap to the functions below.
#include "tests/allocation/counted.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> count{0};

void* counted(void* memory) {
  ++count;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new[](size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

extern "C" {
void* __real_aligned_alloc(size_t alignment, size_t size);
void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  ++count;
  return __real_aligned_alloc(alignment, size);
}
void* __real_mmap(void* address, size_t length, int protection, int flags, int file, off_t offset);
void* __wrap_mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  ++count;
  return __real_mmap(address, length, protection, flags, file, offset);
}
}

namespace clearhead::tests {

size_t allocations() { return count; }

}  // namespace clearhead::tests
