// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "clearhead/base/utf8.h"

namespace clearhead::views {
namespace {

void append_escaped(std::string& output, char32_t value) {
  switch (value) {
    case '"': output += "\\\""; return;
    case '\\': output += "\\\\"; return;
    case '\n': output += "\\n"; return;
    case '\r': output += "\\r"; return;
    case '\t': output += "\\t"; return;
    default: break;
  }
  if (value < 0x20 || value == 0x7F)
    output += fmt::format("\\u{:04x}", static_cast<uint32_t>(value));
  else
    base::append_utf8(output, value);
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  while (!text.empty()) {
    const base::CodePoint point = base::decode_utf8(text);
    append_escaped(text_, point.value);
    text.remove_prefix(point.length);
  }
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(float number) { return std::isfinite(number) ? raw(fmt::format("{}", number)) : null(); }
JsonWriter& JsonWriter::value(double number) { return std::isfinite(number) ? raw(fmt::format("{}", number)) : null(); }

JsonWriter& JsonWriter::list(std::span<const float> numbers) {
  begin_list();
  for (const float number : numbers) value(number);
  return end_list();
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

void JsonWriter::separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
}

}  // namespace clearhead::views
