// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/terminal.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "clearhead/base/utf8.h"

namespace clearhead::views {
namespace {

constexpr char32_t kZeroWidthNonJoiner = 0x200C;
constexpr char32_t kZeroWidthJoiner = 0x200D;
constexpr char32_t kEmojiPresentation = 0xFE0F;
constexpr char32_t kKeycap = 0x20E3;
constexpr char32_t kDottedCircle = 0x25CC;
constexpr char32_t kBlackFlag = 0x1F3F4;
constexpr char32_t kReplacement = 0xFFFD;

int bound_class(char32_t value) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->boundclass; }

utf8proc_category_t category(char32_t value) { return utf8proc_category(static_cast<utf8proc_int32_t>(value)); }

bool is_pictograph(char32_t value) { return bound_class(value) == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC; }
bool is_regional(char32_t value) { return bound_class(value) == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR; }
bool is_emoji_modifier(char32_t value) { return value >= 0x1F3FB && value <= 0x1F3FF; }
bool is_flag_tag(char32_t value) { return value >= 0xE0020 && value <= 0xE007F; }

bool is_mark(char32_t value) {
  const auto kind = category(value);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ME;
}

// What printable() remembers of the text before a character: 0 if a mark or joiner would have nothing to stand on.
struct Before {
  char32_t last = 0;
  char32_t base = 0;  // last character that is no mark, joiner or tag
};

// Format characters order, hide or join what stands around them; only joins inside a character are let through.
bool may_format(char32_t value, const Before& before) {
  if (value == kZeroWidthJoiner || value == kZeroWidthNonJoiner)
    return before.base != 0 && before.last != kZeroWidthJoiner && before.last != kZeroWidthNonJoiner;
  return is_flag_tag(value) && before.base == kBlackFlag;
}

bool is_shown_as_is(char32_t value, const Before& before) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_CF: return may_format(value, before);
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_CN: return is_pictograph(value);
    default: return true;
  }
}

void append_stand_in(std::string& output, char32_t value, bool ascii) {
  if (!ascii && value < 0x20)
    base::append_utf8(output, 0x2400 + value);  // control pictures
  else if (!ascii && value == 0x7F)
    base::append_utf8(output, 0x2421);
  else
    output += fmt::format("\\u{{{:X}}}", static_cast<uint32_t>(value));
}

// Columns of one extended grapheme cluster.
size_t cluster_width(const std::vector<char32_t>& values) {
  size_t width = 0, regionals = 0;
  char32_t previous = 0, base = 0;
  bool emoji = false;
  for (const char32_t value : values) {
    const int kind = bound_class(value);
    const bool joined = previous == kZeroWidthJoiner && is_pictograph(value);
    const bool modifies = is_emoji_modifier(value) && previous != 0;
    const bool jamo_tail = previous != 0 && (kind == UTF8PROC_BOUNDCLASS_V || kind == UTF8PROC_BOUNDCLASS_T);
    if (!joined && !modifies && !jamo_tail && !is_mark(value))
      width += static_cast<size_t>(std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(value))));
    regionals += is_regional(value) ? 1 : 0;
    emoji = emoji || (value == kEmojiPresentation && is_pictograph(base)) || (value == kKeycap && base < 0x80);
    if (base == 0) base = value;
    previous = value;
  }
  if (emoji || regionals == 2) return 2;
  return width;
}

}  // namespace

std::vector<Cluster> clusters(std::string_view printable_text) {
  std::vector<Cluster> found;
  std::vector<char32_t> values;
  utf8proc_int32_t state = 0;
  size_t start = 0;
  for (size_t at = 0; at < printable_text.size();) {
    const base::CodePoint point = base::decode_utf8(printable_text.substr(at));
    if (!values.empty() && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(values.back()),
                                                            static_cast<utf8proc_int32_t>(point.value), &state) != 0) {
      found.push_back({printable_text.substr(start, at - start), cluster_width(values)});
      values.clear();
      start = at;
    }
    values.push_back(point.value);
    at += point.length;
  }
  if (!values.empty()) found.push_back({printable_text.substr(start), cluster_width(values)});
  return found;
}

size_t display_width(std::string_view text) {
  const std::string shown = printable(text, Style{});
  size_t width = 0;
  for (const Cluster& cluster : clusters(shown)) width += cluster.width;
  return width;
}

std::string printable(std::string_view text, const Style& style) {
  std::string output;
  Before before;
  for (size_t at = 0; at < text.size();) {
    const base::CodePoint point = base::decode_utf8(text.substr(at));
    at += point.length;
    const char32_t value = point.valid ? point.value : kReplacement;
    if (!is_shown_as_is(value, before) || (style.ascii && value > 0x7E)) {
      append_stand_in(output, value, style.ascii);
      before = {};
      continue;
    }
    const bool mark = is_mark(value);
    if (mark && before.base == 0) {
      base::append_utf8(output, kDottedCircle);
      before.base = kDottedCircle;
    }
    base::append_utf8(output, value);
    before.last = value;
    if (!mark && category(value) != UTF8PROC_CATEGORY_CF)
      before.base = category(value) == UTF8PROC_CATEGORY_ZS ? 0 : value;
  }
  // A joiner at the end would reach into what is printed next.
  if (before.last == kZeroWidthJoiner) output.resize(output.size() - 3);
  return output;
}

std::string fit(std::string_view text, size_t columns, const Style& style) {
  const std::string shown = printable(text, style);
  const std::vector<Cluster> parts = clusters(shown);
  size_t total = 0;
  for (const Cluster& part : parts) total += part.width;
  if (total <= columns) return shown + std::string(columns - total, ' ');

  const std::string_view ellipsis = style.ascii ? ".." : "\xE2\x80\xA6";
  const size_t mark = std::min<size_t>(columns, style.ascii ? 2 : 1);
  std::string output;
  size_t used = 0;
  for (const Cluster& part : parts) {
    if (used + part.width + mark > columns) break;
    output += part.text;
    used += part.width;
  }
  output += mark == 0 ? std::string_view{} : ellipsis.substr(0, style.ascii ? mark : ellipsis.size());
  return output + std::string(columns - used - mark, ' ');
}

}  // namespace clearhead::views
