// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/regex_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/text/regex_syntax.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr size_t kMostRepeats = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

CodeSet known_set(std::string_view name) { return code_set_of(name).value(); }

}  // namespace

void RegexReader::fail(std::string_view what) const {
  base::fail(where_, "a regular expression that is known here",
             fmt::format("{} at byte {} of {}", what, at_, base::quoted(text_)));
}

bool RegexReader::take(std::string_view what) {
  if (!next_is(what)) return false;
  at_ += what.size();
  return true;
}

char32_t RegexReader::take() {
  const ValidCodePoint here = code_point_at(text_, at_);
  at_ += here.length;
  return here.value;
}

std::optional<size_t> RegexReader::take_number() {
  if (done() || !is_digit(text_[at_])) return std::nullopt;
  size_t number = 0;
  for (; !done() && is_digit(text_[at_]); ++at_) {
    number = 10 * number + static_cast<size_t>(text_[at_] - '0');
    if (number > kMostRepeats) fail(fmt::format("a number above {}", kMostRepeats));
  }
  return number;
}

std::string_view RegexReader::take_until(char end) {
  const size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) fail(fmt::format("no {} behind what is", end));
  const std::string_view taken = text_.substr(at_, found - at_);
  at_ = found + 1;
  return taken;
}

// d, w, s, h and p, and the same in capitals: what is none.
std::optional<CodeSet> RegexReader::take_kind(bool in_class) {
  const std::pair<char, std::string_view> kinds[] = {
      {'d', ":digit"}, {'w', in_class ? ":word" : "word"}, {'s', ":space"}, {'h', ":xdigit"}};
  for (const auto& [letter, name] : kinds) {
    if (take(std::string(1, letter))) return known_set(name);
    if (take(std::string(1, static_cast<char>(letter - 'a' + 'A')))) return known_set(name).complement();
  }
  if (take("p{")) return take_property(false, in_class);
  if (take("P{")) return take_property(true, in_class);
  return std::nullopt;
}

CodeSet RegexReader::take_property(bool inverted, bool in_class) {
  if (take("^")) inverted = !inverted;
  const size_t begin = at_;
  const std::string_view name = take_until('}');
  const auto set = name.starts_with(':') ? std::nullopt : code_set_of(name);
  if (!set) {
    at_ = begin;
    fail("the property " + base::quoted(name));
  }
  static const CodeSet word = known_set("word");
  if (in_class && *set == word) return inverted ? known_set(":word").complement() : known_set(":word");
  return inverted ? set->complement() : *set;
}

// x41, x{4e00}, u4e00
char32_t RegexReader::take_hex() {
  const bool braces = take("x{");
  const bool four = !braces && take("u");
  if (!braces && !four) take("x");
  const size_t most = braces ? 8 : four ? 4 : 2;
  char32_t value = 0;
  size_t digits = 0;
  for (; digits < most && !done() && hex_digit(text_[at_]) >= 0; ++digits, ++at_) {
    value = value << 4 | static_cast<char32_t>(hex_digit(text_[at_]));
  }
  if (digits == 0 || (four && digits != most) || (braces && !take("}"))) fail("a number that is not whole");
  constexpr char32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;
  if (value > 0x10ffff || (value >= kFirstSurrogate && value <= kLastSurrogate)) fail("no code point");
  if (!braces && !four && value >= 0x80) fail("a byte that is no character");
  return value;
}

std::optional<char32_t> RegexReader::take_control() {
  static constexpr std::pair<char, char32_t> kControls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'},
                                                            {'v', '\v'}, {'a', '\a'}, {'e', 0x1b}};
  for (const auto& [letter, control] : kControls) {
    if (take(std::string(1, letter))) return control;
  }
  const bool zero = next_is("0") && !(at_ + 1 < text_.size() && is_digit(text_[at_ + 1]));
  if (zero && take("0")) return U'\0';
  return std::nullopt;
}

RegexReader::Escape RegexReader::take_escape(bool in_class) {
  if (done()) fail("nothing behind a backslash");
  if (auto kind = take_kind(in_class)) return *std::move(kind);
  if (const auto control = take_control()) return *control;
  if (next_is("x") || next_is("u")) return take_hex();
  const char32_t c = code_point_at(text_, at_).value;
  if (c < 0x80 && (is_letter(c) || is_digit(static_cast<char>(c)))) return {};
  return take();
}

CodeSet RegexReader::with_both_cases(const CodeSet& set) const {
  static const CodeSet allowed = [] {
    CodeSet result(0, 0x7f);
    result.add(known_set(":space"));
    result.add(known_set(":digit"));
    return result;
  }();
  if (!allowed.contains(set)) fail("(?i) with more than ASCII");
  constexpr char32_t kLongS = 0x17f, kKelvin = 0x212a;
  CodeSet result = set;
  for (char32_t c = 'a'; c <= 'z'; ++c) {
    const char32_t capital = c - 'a' + 'A';
    if (!set.contains(c) && !set.contains(capital)) continue;
    result.add(c, c);
    result.add(capital, capital);
    if (c == 's') result.add(kLongS, kLongS);
    if (c == 'k') result.add(kKelvin, kKelvin);
  }
  return result;
}

// [:name:] and [:^name:], behind the [
bool RegexReader::take_posix(CodeSet& set) {
  if (!next_is(":")) return false;
  const size_t end = text_.find(":]", at_ + 1);
  if (end == std::string_view::npos) return false;
  std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
  const bool inverted = name.starts_with('^');
  if (inverted) name.remove_prefix(1);
  const auto found = code_set_of(":" + std::string(name));
  if (!found) return false;
  set.add(inverted ? found->complement() : *found);
  at_ = end + 2;
  return true;
}

RegexReader::Escape RegexReader::take_class_item() {
  if (!take("\\")) return take();
  if (take("b")) return U'\b';
  Escape escape = take_escape(true);
  if (std::holds_alternative<std::monostate>(escape)) fail("a backslash that means nothing in a class");
  return escape;
}

// One character, a stretch from one to another, or a set.
void RegexReader::take_class_part(bool any_case, size_t depth, CodeSet& set) {
  if (take("[")) {
    if (!take_posix(set)) set.add(take_class(any_case, depth + 1));
    return;
  }
  const Escape item = take_class_item();
  if (const auto* kind = std::get_if<CodeSet>(&item)) return set.add(*kind);
  const char32_t first = std::get<char32_t>(item);
  const bool is_range = next_is("-") && !next_is("-]") && at_ + 1 < text_.size();
  if (!is_range) return set.add(first, first);
  take("-");
  if (next_is("[")) fail("a class at the end of a stretch");
  const Escape end = take_class_item();
  const auto* last = std::get_if<char32_t>(&end);
  if (last == nullptr) fail("a set at the end of a stretch");
  if (*last < first) fail("a stretch that ends before it begins");
  set.add(first, *last);
}

CodeSet RegexReader::take_class(bool any_case, size_t depth) {
  if (depth > kMaxRegexDepth) fail(fmt::format("classes deeper than {}", kMaxRegexDepth));
  const bool inverted = take("^");
  CodeSet set;
  std::optional<CodeSet> before;  // an &&
  if (take("]")) set.add(U']', U']');
  while (!take("]")) {
    if (done()) fail("no ] behind a class");
    if (take("&&")) {
      if (any_case) fail("(?i) with &&");
      before = before ? before->intersection(set) : set;
      set = {};
    } else {
      take_class_part(any_case, depth, set);
    }
  }
  if (before) set = before->intersection(set);
  if (any_case) set = with_both_cases(set);
  return inverted ? set.complement() : set;
}

}  // namespace clearhead::text
