// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: either it is refused by an Error, or the tensors lie in the data and each can be decoded,
// and every value of the metadata can be asked for as anything.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/format/gguf.h"

namespace {

namespace format = clearhead::format;
namespace tensor = clearhead::tensor;

void check_blocks(const tensor::BlockView& blocks) {
  const size_t size = tensor::block_bytes(blocks.type);
  if (blocks.bytes.size() % size != 0) std::abort();
  std::vector<float> values(blocks.bytes.size() / size * tensor::block_values(blocks.type));
  tensor::decode_blocks(blocks.type, blocks.bytes, values);
  const auto bad = tensor::first_bad_scale(blocks.type, blocks.bytes);
  if (bad && *bad >= blocks.bytes.size() / size) std::abort();
}

template <class Ask>
void ask(const Ask& question) {
  try {
    question();
  } catch (const clearhead::base::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  try {
    const auto file = format::GgufFile::read({input.begin(), input.end()}, "fuzz");
    size_t at = 0;
    for (const format::TensorEntry& entry : file.entries()) {
      if (entry.begin < at || entry.end < entry.begin || &file.entry(entry.name) != &entry) std::abort();
      at = entry.end;
      if (entry.dtype && file.view(entry.name).bytes().size() != entry.bytes()) std::abort();
      if (entry.block_type) check_blocks(file.blocks(entry.name));
    }
    const format::GgufMetadata& metadata = file.metadata();
    for (const auto& entry : metadata.values()) {
      const auto& key = entry.first;  // clang 16 lets no lambda capture a structured binding under OpenMP
      if (entry.second.text().empty()) std::abort();
      ask([&] { metadata.find_word(key); });
      ask([&] { metadata.find_count(key); });
      ask([&] { metadata.find_number(key); });
      ask([&] { metadata.find_flag(key); });
      ask([&] { metadata.find_words(key); });
      ask([&] { metadata.find_numbers(key); });
      ask([&] { metadata.find_integers(key); });
    }
  } catch (const clearhead::base::Error&) {
  }
  return 0;
}
