// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace clearhead::base {

// The system's large pages: a range that has whole ones is filled with one fault each, and the processor finds its
// places with one entry each, where the system lends them to who asks.
inline constexpr size_t kLargePage = size_t{2} << 20;

// Memory from the system, all zero, which takes room once it is touched; of more than kLargePage bytes in large pages,
// as far as whole ones fit, which are touched as a whole. Throws: std::bad_alloc.
std::byte* map_pages(size_t bytes);
void unmap_pages(std::byte* begin, size_t bytes);

// Room for buffers one behind the other that are given back together, when the last of them is no longer used.
class Slab {
 public:
  explicit Slab(size_t bytes);
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Room for so many bytes, a multiple of 64, all zero; null if there is not enough left.
  std::byte* take(size_t bytes);

 private:
  std::byte* begin_;
  size_t size_, used_ = 0;
};

// A place in a slab, which it keeps.
struct SlabPlace {
  std::shared_ptr<Slab> slab;
  std::byte* begin;
};

// Room in the slab that buffers are put in at present, or in a new one. Any thread may ask. Throws: std::bad_alloc.
SlabPlace take_from_slab(size_t bytes);

}  // namespace clearhead::base
