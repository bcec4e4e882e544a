// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/format/safetensors.h"

namespace clearhead::format {
namespace {

std::string json_string(std::string_view text, std::string_view where) {
  if (const auto at = base::first_invalid_utf8(text)) {
    base::refuse(where, "names and metadata in UTF-8", fmt::format("{} at byte {}", base::quoted(text), *at));
  }
  return nlohmann::json(text).dump();
}

void check_names(std::span<const PlannedTensor> tensors, std::string_view where) {
  std::unordered_set<std::string_view> seen;
  for (const PlannedTensor& each : tensors) {
    if (each.name == "__metadata__") {
      base::refuse(where, "names of tensors", "\"__metadata__\"", "the format reserves it");
    }
    if (!seen.insert(each.name).second) base::refuse(where, "each name once", base::quoted(each.name) + " again");
    if (each.shape.rank() > kMaxAxes) {
      base::refuse(where, fmt::format("at most {} axes", kMaxAxes),
                   fmt::format("{} of {}", each.shape.rank(), base::quoted(each.name)));
    }
  }
}

// Places in the list, those of the wider types first.
std::vector<size_t> widest_first(std::span<const PlannedTensor> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t index) { return tensor::size_of(tensors[index].dtype); });
  return order;
}

size_t bytes_of(const PlannedTensor& planned, std::string_view where) {
  const auto bytes = base::checked_multiply(planned.shape.elements(), tensor::size_of(planned.dtype));
  if (!bytes) base::refuse(where, "tensors whose bytes fit 64 bits", base::quoted(planned.name));
  return *bytes;
}

// The header, and where each tensor's bytes begin behind it.
struct Layout {
  std::string header;
  std::vector<size_t> begins;  // [tensors]
  size_t bytes = 0;            // of all tensors
};

Layout lay_out(std::span<const PlannedTensor> tensors, const std::map<std::string, std::string>& metadata,
               std::string_view where) {
  std::vector<std::string> parts;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      pairs.push_back(fmt::format("{}:{}", json_string(key, where), json_string(value, where)));
    }
    parts.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(pairs, ",")));
  }
  Layout layout;
  layout.begins.resize(tensors.size());
  for (size_t index : widest_first(tensors)) {
    const PlannedTensor& each = tensors[index];
    const auto end = base::checked_add(layout.bytes, bytes_of(each, where));
    if (!end) base::refuse(where, "tensors whose bytes fit 64 bits", base::quoted(each.name));
    parts.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                json_string(each.name, where), tensor::name_of(each.dtype),
                                fmt::join(each.shape.sizes(), ","), layout.bytes, *end));
    layout.begins[index] = layout.bytes;
    layout.bytes = *end;
  }
  layout.header = fmt::format("{{{}}}", fmt::join(parts, ","));
  layout.header.append((8 - layout.header.size() % 8) % 8, ' ');
  if (layout.header.size() > kMaxHeaderBytes) {
    base::refuse(where, fmt::format("a header of at most {} bytes", kMaxHeaderBytes),
                 fmt::format("{} bytes", layout.header.size()), "write fewer tensors or less metadata");
  }
  return layout;
}

std::string where_of(const std::filesystem::path& path) { return base::quoted(path.string(), 400); }

}  // namespace

SafetensorsOutput::SafetensorsOutput(const std::filesystem::path& path, std::span<const PlannedTensor> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  const std::string where = where_of(path);
  check_names(tensors, where);
  if (metadata.size() > kMaxMetadata) {
    base::refuse(where, fmt::format("at most {} entries of metadata", kMaxMetadata),
                 fmt::format("{}", metadata.size()));
  }
  const Layout layout = lay_out(tensors, metadata, where);
  const uint64_t length = layout.header.size();
  const size_t data_begin = sizeof length + layout.header.size();
  file_.resize(base::checked_add(data_begin, layout.bytes).value_or(std::numeric_limits<size_t>::max()));
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(layout.header);
  for (size_t index = 0; index < tensors.size(); ++index) {
    places_.push_back({data_begin + layout.begins[index], bytes_of(tensors[index], where)});
  }
}

void SafetensorsOutput::write(size_t index, size_t first, std::span<const std::byte> bytes) {
  const Place& place = places_.at(index);
  if (first > place.size || bytes.size() > place.size - first) {
    base::refuse("safetensors", fmt::format("bytes inside the {} of a tensor", place.size),
                 fmt::format("{} from {} on", bytes.size(), first));
  }
  file_.write_at(place.begin + first, bytes);
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<PlannedTensor> planned;
  for (const NamedTensor& each : tensors) planned.push_back({each.name, each.tensor.dtype(), each.tensor.shape()});
  SafetensorsOutput output(path, planned, metadata);
  for (size_t index = 0; index < tensors.size(); ++index) output.write(index, 0, tensors[index].tensor.bytes());
  output.commit();
}

}  // namespace clearhead::format
