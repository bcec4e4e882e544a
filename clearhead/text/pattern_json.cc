// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/pattern_json.h"

#include "clearhead/base/error.h"

namespace clearhead::text {

std::unique_ptr<Pattern> read_pattern(JsonFields::Element value, const std::string& where) {
  JsonFields fields(value, where);
  const bool is_string = fields.has("String");
  const std::string pattern(fields.string(is_string ? "String" : "Regex"));
  fields.close();
  if (!is_string) return regex_pattern(pattern, where);
  if (pattern.empty()) base::fail(where, "a text to look for", "an empty one");
  return literal_pattern(pattern);
}

}  // namespace clearhead::text
