// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/trace_json.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "clearhead/base/error.h"

namespace clearhead::capture {
namespace {

using Json = nlohmann::json;
using Metadata = std::map<std::string, std::string>;

// Never throws: a text that is no JSON gives a discarded value, which is of no type.
Json parse(std::string_view text) { return Json::parse(text, nullptr, false); }

nlohmann::ordered_json token_json(const TraceToken& token) {
  return {{"text", token.text},       {"id", token.id},       {"offsets", {token.begin, token.end}},
          {"special", token.special}, {"piece", token.piece}, {"continues_word", token.continues_word},
          {"type_id", token.type_id}};
}

// Reads the values of one file; where names it in errors.
class Reader {
 public:
  Reader(const Metadata& metadata, std::string_view where) : metadata_(metadata), where_(where) {}

  const std::string& text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) {
      base::fail(where_, fmt::format("a trace, with \"{}\" in its metadata", key), "no such key",
                 "was this file written by clearhead record?");
    }
    return found->second;
  }

  size_t number(const std::string& key) const {
    const std::string& digits = text(key);
    size_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc{} || end != digits.data() + digits.size()) {
      fail(key, "a decimal number", digits);
    }
    return value;
  }

  std::vector<size_t> indices(const std::string& key) const {
    const Json list = parse(text(key));
    if (!list.is_array()) fail(key, "a JSON list of numbers", text(key));
    std::vector<size_t> values;
    for (const Json& value : list) {
      if (!value.is_number_unsigned()) fail(key, "a JSON list of numbers", text(key));
      values.push_back(value.get<size_t>());
    }
    return values;
  }

  std::vector<TraceToken> tokens(const std::string& key) const {
    const Json list = parse(text(key));
    if (!list.is_array()) fail(key, "a JSON list of tokens", text(key));
    std::vector<TraceToken> values;
    for (const Json& value : list) values.push_back(token(fmt::format("{}[{}]", key, values.size()), value));
    return values;
  }

 private:
  TraceToken token(const std::string& place, const Json& value) const {
    if (!value.is_object()) fail(place, "a JSON object", print(value));
    TraceToken result;
    result.text = string(place, value, "text");
    result.id = integer(place, value, "id");
    result.special = boolean(place, value, "special");
    const Json& offsets = member(place, value, "offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail(place + ".offsets", "two byte offsets", print(offsets));
    }
    result.begin = offsets[0].get<size_t>();
    result.end = offsets[1].get<size_t>();
    result.piece = value.contains("piece") ? string(place, value, "piece") : result.text;
    if (value.contains("continues_word")) result.continues_word = boolean(place, value, "continues_word");
    if (value.contains("type_id")) result.type_id = integer(place, value, "type_id");
    return result;
  }

  const Json& member(const std::string& place, const Json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) fail(place, fmt::format("a member \"{}\"", name), print(object));
    return *found;
  }

  std::string string(const std::string& place, const Json& object, const char* name) const {
    const Json& value = member(place, object, name);
    if (!value.is_string()) fail(fmt::format("{}.{}", place, name), "a string", print(value));
    return value.get<std::string>();
  }

  int64_t integer(const std::string& place, const Json& object, const char* name) const {
    const Json& value = member(place, object, name);
    const bool too_large =
        value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (!value.is_number_integer() || too_large) {
      fail(fmt::format("{}.{}", place, name), "a whole number of 64 bits", print(value));
    }
    return value.get<int64_t>();
  }

  bool boolean(const std::string& place, const Json& object, const char* name) const {
    const Json& value = member(place, object, name);
    if (!value.is_boolean()) fail(fmt::format("{}.{}", place, name), "true or false", print(value));
    return value.get<bool>();
  }

  // Lists and objects by their kind only: printing them would follow their nesting, which a hostile file makes deep.
  static std::string print(const Json& value) { return value.is_structured() ? value.type_name() : value.dump(); }

  [[noreturn]] void fail(const std::string& place, std::string_view expected, std::string_view found) const {
    base::fail(where_, fmt::format("{} in the metadata's {}", expected, place), base::quoted(found));
  }

  const Metadata& metadata_;
  std::string_view where_;
};

}  // namespace

Metadata metadata_of(const TraceInfo& trace_info) {
  auto tokens = nlohmann::ordered_json::array();
  for (const TraceToken& token : trace_info.tokens) tokens.push_back(token_json(token));
  Metadata metadata = {{"clearhead.version", trace_info.version},
                       {"model", trace_info.model},
                       {"text", trace_info.text},
                       {"tokens", tokens.dump()},
                       {"attention", trace_info.attention},
                       {"num_layers", fmt::format("{}", trace_info.num_layers)},
                       {"num_heads", fmt::format("{}", trace_info.num_heads)},
                       {"num_kv_heads", fmt::format("{}", trace_info.num_kv_heads)},
                       {"layers", Json(trace_info.layers).dump()},
                       {"heads", Json(trace_info.heads).dump()}};
  if (trace_info.declared_len != 0) metadata["declared_len"] = fmt::format("{}", trace_info.declared_len);
  if (trace_info.written != 0) metadata["written"] = fmt::format("{}", trace_info.written);
  return metadata;
}

TraceInfo info_from_metadata(const Metadata& metadata, std::string_view where) {
  const Reader reader(metadata, where);
  TraceInfo result;
  result.version = reader.text("clearhead.version");
  result.model = reader.text("model");
  result.text = reader.text("text");
  result.tokens = reader.tokens("tokens");
  if (metadata.contains("declared_len")) result.declared_len = reader.number("declared_len");
  if (metadata.contains("written")) result.written = reader.number("written");
  result.attention = reader.text("attention");
  result.num_layers = reader.number("num_layers");
  result.num_heads = reader.number("num_heads");
  result.num_kv_heads = reader.number("num_kv_heads");
  result.layers = reader.indices("layers");
  result.heads = reader.indices("heads");
  return result;
}

bool is_json_object(std::string_view text) { return parse(text).is_object(); }

bool TraceInfo::causal() const {
  const Json config = parse(attention);
  if (!config.is_object()) return false;
  const auto found = config.find("causal");
  return found != config.end() && found->is_string() && *found != "none";
}

}  // namespace clearhead::capture
