// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "clearhead/base/error.h"
#include "clearhead/base/output_file.h"
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

void check_names(std::span<const NamedTensor> tensors, std::string_view where) {
  std::unordered_set<std::string_view> seen;
  for (const NamedTensor& each : tensors) {
    if (each.name == "__metadata__") {
      base::refuse(where, "names of tensors", "\"__metadata__\"", "the format reserves it");
    }
    if (!seen.insert(each.name).second) base::refuse(where, "each name once", base::quoted(each.name) + " again");
    if (each.tensor.shape().rank() > kMaxAxes) {
      base::refuse(where, fmt::format("at most {} axes", kMaxAxes),
                   fmt::format("{} of {}", each.tensor.shape().rank(), base::quoted(each.name)));
    }
  }
}

std::vector<const NamedTensor*> widest_first(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  order.reserve(tensors.size());
  for (const NamedTensor& each : tensors) order.push_back(&each);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const NamedTensor* each) { return tensor::size_of(each->tensor.dtype()); });
  return order;
}

std::string header_text(std::span<const NamedTensor* const> order, const std::map<std::string, std::string>& metadata,
                        std::string_view where) {
  std::vector<std::string> parts;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      pairs.push_back(fmt::format("{}:{}", json_string(key, where), json_string(value, where)));
    }
    parts.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(pairs, ",")));
  }
  size_t at = 0;
  for (const NamedTensor* each : order) {
    const size_t end = at + each->tensor.bytes().size();
    parts.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                json_string(each->name, where), tensor::name_of(each->tensor.dtype()),
                                fmt::join(each->tensor.shape().sizes(), ","), at, end));
    at = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(parts, ","));
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    base::refuse(where, fmt::format("a header of at most {} bytes", kMaxHeaderBytes),
                 fmt::format("{} bytes", text.size()), "write fewer tensors or less metadata");
  }
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string where = base::quoted(path.string(), 400);
  check_names(tensors, where);
  if (metadata.size() > kMaxMetadata) {
    base::refuse(where, fmt::format("at most {} entries of metadata", kMaxMetadata),
                 fmt::format("{}", metadata.size()));
  }
  const std::vector<const NamedTensor*> order = widest_first(tensors);
  const std::string text = header_text(order, metadata, where);
  base::OutputFile file(path);
  const uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const NamedTensor* each : order) file.write(each->tensor.bytes());
  file.commit();
}

}  // namespace clearhead::format
