// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file, and any bytes as the header of one whose length is right: either it is refused by an
// Error, or the tensors tile the data and each can be read.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/format/safetensors.h"

namespace {

namespace format = clearhead::format;

void check(std::vector<std::byte> bytes) {
  try {
    const auto file = format::SafetensorsFile::read(std::move(bytes), "fuzz");
    size_t at = 0;
    for (const format::TensorEntry& entry : file.entries()) {
      if (entry.begin != at || entry.end < at || &file.entry(entry.name) != &entry) std::abort();
      at = entry.end;
      if (!entry.dtype) continue;
      const auto view = file.view(entry.name);
      const auto count = format::count_non_finite(view);
      if (view.bytes().size() != entry.bytes() || count.nans + count.infinities > view.elements()) std::abort();
    }
    if (at != file.total_bytes()) std::abort();
  } catch (const clearhead::base::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kDataBytes = 16;  // behind the header that is made of the input
  const auto input = std::as_bytes(std::span(data, size));
  check({input.begin(), input.end()});

  std::vector<std::byte> framed(8);
  for (size_t i = 0; i < 8; ++i) framed[i] = static_cast<std::byte>(uint64_t{size} >> (8 * i));
  framed.insert(framed.end(), input.begin(), input.end());
  framed.resize(framed.size() + kDataBytes, std::byte{0xff});
  check(std::move(framed));
  return 0;
}
