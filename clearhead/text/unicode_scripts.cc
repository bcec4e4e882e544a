// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/unicode_scripts.h"

#include <cstdint>

#include "clearhead/text/break_tables.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr uint8_t kAny = 0;

const PropertyTable& script_table() {
  static const PropertyTable table = [] {
    std::vector<uint8_t> scripts(0x110000, kAny);
    for (const tables::ScriptRange& range : tables::kScriptRanges) {
      for (char32_t c = range.first; c <= range.last; ++c) scripts[c] = range.script;
    }
    return PropertyTable(scripts);
  }();
  return table;
}

}  // namespace

void UnicodeScripts::split(AlignedText& text, std::vector<Span>& words) const {
  const PropertyTable& table = script_table();
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 5);
  for (const Span word : words) {
    uint8_t last = kAny;
    uint32_t begin = word.end;  // nothing, before the first script
    for (uint32_t at = word.begin; at < word.end;) {
      const ValidCodePoint here = code_point_at(text.bytes(), at);
      const uint8_t script = table[here.value];
      if (script != kAny && script != last) {
        if (last != kAny) cut.push_back({begin, at});
        begin = at;
        last = script;
      }
      at += static_cast<uint32_t>(here.length);
    }
    if (begin < word.end) cut.push_back({begin, word.end});
  }
  words.swap(cut);
}

}  // namespace clearhead::text
