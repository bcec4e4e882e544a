// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/format/gguf_cursor.h"

namespace clearhead::format {
namespace {

constexpr uint32_t kMagic = 0x46554747;                                         // "GGUF"
constexpr size_t kLeastKeyValue = 8 + 4 + 1, kLeastTensor = 8 + 1 + 4 + 4 + 8;  // bytes
constexpr size_t kLeastString = 8;

struct TypeRow {
  uint32_t id;
  std::string_view name;
  std::optional<tensor::DType> dtype = std::nullopt;
  std::optional<tensor::BlockType> block = std::nullopt;
};

using tensor::BlockType;
using tensor::DType;

constexpr std::array kTypes = {
    TypeRow{0, "F32", DType::f32, {}}, TypeRow{1, "F16", DType::f16, {}}, TypeRow{2, "Q4_0", {}, BlockType::q4_0},
    TypeRow{3, "Q4_1", {}, BlockType::q4_1}, TypeRow{6, "Q5_0", {}, BlockType::q5_0},
    TypeRow{7, "Q5_1", {}, BlockType::q5_1}, TypeRow{8, "Q8_0", {}, BlockType::q8_0},
    TypeRow{12, "Q4_K", {}, BlockType::q4_k}, TypeRow{13, "Q5_K", {}, BlockType::q5_k},
    TypeRow{14, "Q6_K", {}, BlockType::q6_k}, TypeRow{30, "BF16", DType::bf16, {}},
    // known to the format, not to us
    TypeRow{9, "Q8_1"}, TypeRow{10, "Q2_K"}, TypeRow{11, "Q3_K"}, TypeRow{15, "Q8_K"}, TypeRow{16, "IQ2_XXS"},
    TypeRow{17, "IQ2_XS"}, TypeRow{18, "IQ3_XXS"}, TypeRow{19, "IQ1_S"}, TypeRow{20, "IQ4_NL"}, TypeRow{21, "IQ3_S"},
    TypeRow{22, "IQ2_S"}, TypeRow{23, "IQ4_XS"}, TypeRow{24, "I8"}, TypeRow{25, "I16"}, TypeRow{26, "I32"},
    TypeRow{27, "I64"}, TypeRow{28, "F64"}, TypeRow{29, "IQ1_M"}, TypeRow{34, "TQ1_0"}, TypeRow{35, "TQ2_0"},
    TypeRow{39, "MXFP4"}, TypeRow{40, "NVFP4"}, TypeRow{41, "Q1_0"}, TypeRow{42, "Q2_0"}};

const TypeRow& type_of(uint32_t id, std::string_view where) {
  constexpr std::string_view kExpected =
      "one of the types F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K";
  const auto row = std::ranges::find(kTypes, id, &TypeRow::id);
  if (row == kTypes.end()) base::fail(where, kExpected, fmt::format("type {}, which the format does not have", id));
  if (!row->dtype && !row->block) {
    base::fail(where, kExpected, std::string(row->name), "take a file of another quantisation of this model");
  }
  return *row;
}

// Reads magic and version.
uint32_t read_version(GgufCursor& cursor) {
  if (cursor.remaining() < 24) {
    base::fail(cursor.where(), "a GGUF file of at least 24 bytes", fmt::format("{} bytes", cursor.remaining()),
               "the file is empty or was cut off");
  }
  const auto magic = cursor.take(4, "magic");
  if (std::bit_cast<uint32_t>(std::array{magic[0], magic[1], magic[2], magic[3]}) != kMagic) {
    base::fail(cursor.where(), "a file that begins with GGUF",
               base::quoted({reinterpret_cast<const char*>(magic.data()), magic.size()}), "this is no GGUF file");
  }
  const auto version = cursor.number<uint32_t>("version");
  if ((version & 0xffff) == 0 && version != 0) {
    base::fail(cursor.where(), "a little-endian GGUF file", "a big-endian one", "convert the model on this machine");
  }
  if (version != 2 && version != 3) {
    base::fail(cursor.where(), "GGUF version 2 or 3", fmt::format("version {}", version),
               version == 1 ? "convert the model again with a newer program" : "");
  }
  return version;
}

GgufType read_type(GgufCursor& cursor, std::string_view what, std::string_view key) {
  const auto id = cursor.number<uint32_t>("a value's type");
  if (id > static_cast<uint32_t>(GgufType::f64)) {
    base::fail(cursor.where(), fmt::format("{} of {} from 0 to 12", what, base::quoted(key)), fmt::format("{}", id),
               "the file is damaged");
  }
  return static_cast<GgufType>(id);
}

// Steps over one string or number.
void skip_element(GgufCursor& cursor, GgufType type, std::string_view key) {
  if (type == GgufType::string) {
    cursor.string("a string", kMaxGgufStringBytes);
    return;
  }
  const auto bytes = cursor.take(size_of(type), "a value");
  if (type == GgufType::bool_ && std::to_integer<unsigned>(bytes[0]) > 1) {
    base::fail(cursor.where(), fmt::format("0 or 1 as a bool of {}", base::quoted(key)),
               fmt::format("{}", std::to_integer<unsigned>(bytes[0])), "the file is damaged");
  }
}

GgufValue read_value(GgufCursor& cursor, std::span<const std::byte> file, std::string_view key) {
  GgufValue value;
  value.type = read_type(cursor, "a type", key);
  value.is_array = value.type == GgufType::array;
  if (value.is_array) {
    value.type = read_type(cursor, "an element type", key);
    if (value.type == GgufType::array) {
      base::fail(cursor.where(), fmt::format("an array of numbers or strings as {}", base::quoted(key)),
                 "an array of arrays");
    }
    const size_t least = value.type == GgufType::string ? kLeastString : size_of(value.type);
    value.count = cursor.count("elements of an array", least);
  }
  const size_t begin = cursor.at();
  if (value.type == GgufType::string || value.type == GgufType::bool_) {
    for (size_t i = 0; i < value.count; ++i) skip_element(cursor, value.type, key);
  } else {
    cursor.take(value.count * size_of(value.type), "a value");  // count() made sure that the product is in the file
  }
  value.bytes = file.subspan(begin, cursor.at() - begin);
  return value;
}

bool is_plain_key(std::string_view key) {
  return std::ranges::all_of(
      key, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'; });
}

void read_metadata(GgufCursor& cursor, std::span<const std::byte> file, size_t count, GgufHeader& header) {
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = cursor.string("a key", kMaxGgufKeyBytes);
    if (key.empty()) base::fail(cursor.where(), "keys of at least one byte", "an empty one", "the file is damaged");
    if (!is_plain_key(key) && header.warnings.empty()) {
      header.warnings.push_back(fmt::format("{}: the key {} is not of lower-case letters, digits, _, - and .",
                                            cursor.where(), base::quoted(key)));
    }
    const GgufValue value = read_value(cursor, file, key);
    if (!header.metadata.add(std::string(key), value)) {
      base::fail(cursor.where(), "each key once", base::quoted(key) + " again", "the file is damaged");
    }
  }
}

size_t alignment_of(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const auto place = metadata.values().find(kKey);
  if (place == metadata.values().end()) return kGgufAlignment;
  const GgufValue& value = place->second;
  const size_t alignment = value.is_array || value.type != GgufType::u32 ? 0 : metadata.count(kKey);
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kMaxGgufAlignment) {
    base::fail(metadata.where(),
               fmt::format("general.alignment of type u32, a power of two from 8 to {}", kMaxGgufAlignment),
               fmt::format("{} {}", name_of(value.type), value.text()), "the file is damaged");
  }
  return alignment;
}

tensor::Shape read_shape(GgufCursor& cursor, std::string_view where) {
  const auto rank = cursor.number<uint32_t>("a number of axes");
  if (rank > kMaxGgufAxes) {
    base::fail(where, fmt::format("at most {} axes", kMaxGgufAxes), fmt::format("{}", rank), "the file is damaged");
  }
  std::array<size_t, kMaxGgufAxes> sizes{};
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto size = cursor.number<int64_t>("an axis");
    if (size < 0) base::fail(where, "axes of 0 or more", fmt::format("{}", size), "the file is damaged");
    sizes[rank - 1 - axis] = static_cast<size_t>(size);  // the file has the fastest first
  }
  return tensor::Shape(std::span<const size_t>(sizes).first(rank));
}

size_t bytes_of(const TypeRow& type, const tensor::Shape& shape, std::string_view where) {
  const auto elements = shape.checked_elements();
  std::optional<size_t> bytes;
  if (elements && type.dtype) bytes = base::checked_multiply(*elements, tensor::size_of(*type.dtype));
  if (elements && type.block) {
    const size_t values = tensor::block_values(*type.block), columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
    if (columns % values != 0) {
      base::fail(where, fmt::format("rows of whole blocks of {} values for {}", values, type.name),
                 fmt::format("rows of {}", columns), "the file is damaged");
    }
    bytes = base::checked_multiply(*elements / values, tensor::block_bytes(*type.block));
  }
  if (!bytes) base::fail(where, "a size that fits 64 bits", fmt::format("{} {}", type.name, shape.text()));
  return *bytes;
}

// One tensor, which must begin at next, the end of the one before it; moves next to the next multiple of alignment.
TensorEntry read_tensor(GgufCursor& cursor, size_t alignment, size_t& next) {
  TensorEntry entry;
  entry.name = cursor.string("the name of a tensor", kMaxGgufNameBytes);
  const std::string where = fmt::format("{}, tensor {}", cursor.where(), base::quoted(entry.name));
  if (entry.name.empty()) base::fail(where, "a name of at least one byte", "an empty one", "the file is damaged");
  entry.shape = read_shape(cursor, where);
  const TypeRow& type = type_of(cursor.number<uint32_t>("a type"), where);
  entry.dtype_name = type.name;
  entry.dtype = type.dtype;
  entry.block_type = type.block;
  const size_t bytes = bytes_of(type, entry.shape, where);
  const auto offset = cursor.number<uint64_t>("an offset");
  if (offset % alignment != 0) {
    base::fail(where, fmt::format("an offset that is a multiple of {}", alignment), fmt::format("{}", offset),
               "the file is damaged");
  }
  if (offset != next) {
    base::fail(where, fmt::format("the offset {}, behind the tensor before it", next), fmt::format("{}", offset),
               "the file is damaged");
  }
  entry.begin = next;
  const auto end = base::checked_add(next, bytes);
  const auto padded = end ? base::checked_add(*end, alignment - 1) : std::nullopt;
  if (!padded) base::fail(where, "an end that fits 64 bits", fmt::format("offset {} and {} bytes", next, bytes));
  entry.end = *end;
  next = *padded / alignment * alignment;
  return entry;
}

std::vector<size_t> sorted_by_name(std::span<const TensorEntry> entries, std::string_view where) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto name = [&](size_t i) { return std::string_view(entries[i].name); };
  std::ranges::sort(order, {}, name);
  const auto twin = std::ranges::adjacent_find(order, {}, name);
  if (twin != order.end()) {
    base::fail(fmt::format("{}, tensor {}", where, base::quoted(entries[*twin].name)), "each name once",
               "the same name again", "the file is damaged");
  }
  return order;
}

}  // namespace

const TensorEntry* GgufHeader::find(std::string_view name) const {
  const auto name_of_place = [&](size_t i) { return std::string_view(entries[i].name); };
  const auto place = std::ranges::lower_bound(by_name, name, {}, name_of_place);
  return place != by_name.end() && entries[*place].name == name ? &entries[*place] : nullptr;
}

GgufHeader parse_gguf_header(std::span<const std::byte> file, std::string_view where) {
  GgufCursor cursor(file, where);
  GgufHeader header;
  header.metadata = GgufMetadata(std::string(where));
  header.version = read_version(cursor);
  const size_t num_tensors = cursor.count("tensors", kLeastTensor);
  const size_t num_values = cursor.count("metadata values", kLeastKeyValue);
  read_metadata(cursor, file, num_values, header);
  const size_t alignment = alignment_of(header.metadata);
  size_t next = 0;
  header.entries.reserve(num_tensors);
  for (size_t i = 0; i < num_tensors; ++i) header.entries.push_back(read_tensor(cursor, alignment, next));
  header.by_name = sorted_by_name(header.entries, where);

  header.data_begin = (cursor.at() + alignment - 1) / alignment * alignment;  // a position in a file: no overflow
  const size_t data_bytes = file.size() - std::min(file.size(), header.data_begin);
  for (const TensorEntry& entry : header.entries) {
    if (entry.end <= data_bytes) continue;
    base::fail(fmt::format("{}, tensor {}", where, base::quoted(entry.name)),
               fmt::format("data within the {} bytes of data", data_bytes),
               fmt::format("bytes {} to {}", entry.begin, entry.end), "the file was cut off");
  }
  if (data_bytes > next) {
    header.warnings.push_back(
        fmt::format("{}: {} bytes behind the last tensor belong to none", where, data_bytes - next));
  }
  return header;
}

}  // namespace clearhead::format
