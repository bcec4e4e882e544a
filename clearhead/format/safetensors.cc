// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/safetensors.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::format {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and are used in place");

namespace {

// Infinity has all bits of the exponent set and none of the fraction, NaN has both; infinity is the bits without sign
// of the positive one.
template <class Bits>
NonFinite count_in(std::span<const std::byte> bytes, Bits infinity) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  NonFinite count;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    const Bits magnitude = value & kMagnitude;
    count.infinities += magnitude == infinity;
    count.nans += magnitude > infinity;
  }
  return count;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, SafetensorsRules rules) {
  SafetensorsFile file;
  file.where_ = base::quoted(path.string(), 400);
  file.mapped_.emplace(path);
  file.header_ = parse_safetensors_header(file.bytes(), file.where_, rules);
  return file;
}

SafetensorsFile SafetensorsFile::read(std::vector<std::byte> bytes, std::string where, SafetensorsRules rules) {
  SafetensorsFile file;
  file.where_ = std::move(where);
  file.owned_ = std::move(bytes);
  file.header_ = parse_safetensors_header(file.bytes(), file.where_, rules);
  return file;
}

const TensorEntry& SafetensorsFile::entry(std::string_view name) const {
  const TensorEntry* found = header_.find(name);
  if (found == nullptr) {
    base::fail(where_, fmt::format("a tensor {}", base::quoted(name)),
               fmt::format("{} tensors, none of that name", entries().size()));
  }
  return *found;
}

tensor::TensorView SafetensorsFile::view(std::string_view name) const {
  const TensorEntry& declared = entry(name);
  if (!declared.dtype) {
    base::fail(fmt::format("{}, tensor {}", where_, base::quoted(name)),
               "one of the types F32, F16, BF16, F64, I64, I32, U8, BOOL", base::quoted(declared.dtype_name),
               "convert the file to one of them");
  }
  return {*declared.dtype, declared.shape, bytes().subspan(header_.data_begin + declared.begin, declared.bytes())};
}

void SafetensorsFile::release_pages(std::span<const std::byte> part) const {
  const auto all = bytes();
  const std::less_equal<const std::byte*> not_after;
  const bool mine = not_after(all.data(), part.data()) && not_after(part.data() + part.size(), all.data() + all.size());
  if (mapped_ && mine) mapped_->release_pages(part);
}

NonFinite count_non_finite(const tensor::TensorView& view) {
  switch (view.dtype()) {
    case tensor::DType::f32: return count_in<uint32_t>(view.bytes(), 0x7f800000);
    case tensor::DType::f16: return count_in<uint16_t>(view.bytes(), 0x7c00);
    case tensor::DType::bf16: return count_in<uint16_t>(view.bytes(), 0x7f80);
    case tensor::DType::f64: return count_in<uint64_t>(view.bytes(), 0x7ff0000000000000);
    default: return {};
  }
}

}  // namespace clearhead::format
