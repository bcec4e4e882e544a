// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/regex_reader.h"

namespace clearhead::text {
namespace {

// What (?i) and (?m) say.
struct Flags {
  bool any_case = false;
  bool dot_all = false;
};

constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

class Syntax {
 public:
  Syntax(std::string_view expression, std::string_view where) : reader_(expression, where) {}

  RegexProgram read() {
    read_alternatives({}, 0);
    if (!reader_.done()) reader_.fail("a ) without its (");
    return std::move(program_);
  }

 private:
  void put(std::string_view frame) { program_.items.push_back({.frame = std::string(frame)}); }

  void put(const CodeSet& set) {
    const auto known = std::ranges::find(program_.sets, set);
    program_.items.push_back({.frame = {}, .set = static_cast<size_t>(known - program_.sets.begin())});
    if (known == program_.sets.end()) program_.sets.push_back(set);
  }

  // Up to a ) or the end. Flags that change in between hold to its end, over alternatives too.
  void read_alternatives(Flags flags, size_t depth) {
    if (depth > kMaxRegexDepth) reader_.fail(fmt::format("groups deeper than {}", kMaxRegexDepth));
    size_t opened = 0;
    while (!reader_.done() && !reader_.next_is(")")) {
      const size_t begin = program_.items.size();
      if (reader_.take("|")) {
        put("|");
        last_letter_ = 0;
      } else if (reader_.take("(?#")) {
        reader_.take_until(')');
      } else if (const auto own = read_flags(flags)) {
        put("(?:");
        if (reader_.take(")")) {
          flags = *own;
          if (++opened > kMaxRegexDepth) reader_.fail("too many changes of flags");
        } else {
          reader_.take(":");
          close_group(*own, depth);
          read_repeats(begin);
        }
      } else if (read_one(flags, depth)) {
        read_repeats(begin);
      }
    }
    while (opened-- > 0) put(")");
  }

  // (?i up to the ) behind which the flags hold, or the : of a group that has its own.
  std::optional<Flags> read_flags(const Flags& before) {
    const size_t begin = reader_.at();
    if (!reader_.take("(?")) return std::nullopt;
    Flags own = before;
    bool on = true, any = false;
    for (;; any = true) {
      if (reader_.take("i")) {
        own.any_case = on;
      } else if (reader_.take("m")) {
        own.dot_all = on;
      } else if (on && reader_.take("-")) {
        on = false;
      } else {
        break;
      }
    }
    if (any && (reader_.next_is(")") || reader_.next_is(":"))) return own;
    reader_.go_back(begin);
    return std::nullopt;
  }

  void close_group(Flags flags, size_t depth) {
    read_alternatives(flags, depth + 1);
    if (!reader_.take(")")) reader_.fail("no ) behind a group");
    put(")");
  }

  // Something that may be repeated: true. What stands between characters is read too, and may not.
  bool read_one(Flags flags, size_t depth) {
    if (reader_.take("(")) return read_group(flags, depth);
    if (reader_.take("\\")) return read_escape(flags);
    for (const std::string_view repeat : {"*", "+", "?"}) {
      if (reader_.next_is(repeat)) reader_.fail("nothing to repeat");
    }
    if (reader_.next_is("{")) {
      const size_t begin = reader_.at();
      if (read_interval()) reader_.fail("nothing to repeat");
      reader_.go_back(begin);
    }
    last_letter_ = reader_.next_is("[") || reader_.next_is(".") ? 0 : last_letter_;
    if (reader_.take("^")) return put_between(kLineBegin);
    if (reader_.take("$")) return put_between(kLineEnd);
    if (reader_.take("[")) {
      put(reader_.take_class(flags.any_case, 0));
    } else if (reader_.take(".")) {
      put(flags.dot_all ? CodeSet(0, 0x10ffff) : CodeSet('\n', '\n').complement());
    } else {
      put_character(reader_.take(), flags);
    }
    return true;
  }

  bool read_group(Flags flags, size_t depth) {
    static constexpr std::string_view kKinds[] = {"?:", "?=", "?!", "?>", "?<=", "?<!"};
    for (const std::string_view kind : kKinds) {
      if (!reader_.take(kind)) continue;
      put("(" + std::string(kind));
      close_group(flags, depth);
      return kind == "?:" || kind == "?>" ? true : no_repeat();
    }
    const bool named = reader_.take("?<");
    if (named) reader_.take_until('>');
    if (!named && reader_.next_is("?")) reader_.fail("a group of a kind that is not known");
    put("(?:");
    close_group(flags, depth);
    return true;
  }

  bool no_repeat() {
    for (const std::string_view repeat : {"*", "+", "?"}) {
      if (reader_.next_is(repeat)) reader_.fail("nothing to repeat");
    }
    return false;
  }

  enum Between { kLineBegin, kLineEnd, kTextBegin, kTextEnd, kTextEndOrLine, kWordEdge, kNoWordEdge };

  // Places, by what stands before and behind.
  bool put_between(Between place) {
    const CodeSet line('\n', '\n'), word = code_set_of("word").value();
    const auto sequence = [&](std::initializer_list<std::string_view> parts, const CodeSet& set) {
      for (const std::string_view part : parts) part.empty() ? put(set) : put(part);
    };
    switch (place) {
      case kLineBegin: sequence({"(?:\\A|(?<=", "", ")(?!\\z))"}, line); break;
      case kLineEnd: sequence({"(?=", "", "|\\z)"}, line); break;
      case kTextBegin: put("\\A"); break;
      case kTextEnd: put("\\z"); break;
      case kTextEndOrLine: sequence({"(?=", "", "?\\z)"}, line); break;
      case kWordEdge: sequence({"(?:(?<=", "", ")(?!", "", ")|(?<!", "", ")(?=", "", "))"}, word); break;
      case kNoWordEdge: sequence({"(?:(?<=", "", ")(?=", "", ")|(?<!", "", ")(?!", "", "))"}, word); break;
    }
    return no_repeat();
  }

  bool read_escape(Flags flags) {
    RegexReader::Escape escape = reader_.take_escape(false);
    if (const auto* c = std::get_if<char32_t>(&escape)) {
      put_character(*c, flags);
      return true;
    }
    last_letter_ = 0;
    if (const auto* set = std::get_if<CodeSet>(&escape)) {
      put(flags.any_case ? reader_.with_both_cases(*set) : *set);
      return true;
    }
    static constexpr std::pair<std::string_view, Between> kPlaces[] = {
        {"A", kTextBegin}, {"z", kTextEnd}, {"Z", kTextEndOrLine}, {"b", kWordEdge}, {"B", kNoWordEdge}};
    for (const auto& [letter, place] : kPlaces) {
      if (reader_.take(letter)) return put_between(place);
    }
    if (reader_.take("R")) {
      put_line_end();
    } else if (reader_.take("N")) {
      put(CodeSet('\n', '\n').complement());
    } else if (reader_.take("O")) {
      put(CodeSet(0, 0x10ffff));
    } else {
      reader_.fail("a backslash that is not known");
    }
    return true;
  }

  // \r\n as one, or one line end of any kind.
  void put_line_end() {
    CodeSet ends('\n', '\r');
    ends.add(0x85, 0x85);
    ends.add(0x2028, 0x2029);
    put("(?>");
    put(CodeSet('\r', '\r'));
    put(CodeSet('\n', '\n'));
    put("|");
    put(ends);
    put(")");
  }

  // With (?i) some letters side by side are one letter too (ss and U+00DF), which no set of code points can say.
  void put_character(char32_t c, Flags flags) {
    if (!flags.any_case) {
      last_letter_ = 0;
      return put(CodeSet(c, c));
    }
    put(reader_.with_both_cases(CodeSet(c, c)));
    const char lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (last_letter_ != 0 && std::ranges::count(kFoldedPairs, std::string{last_letter_, lower}) > 0) {
      reader_.fail("(?i) with letters that are one letter too");
    }
    last_letter_ = lower;
  }

  // * + ? {2} {2,3} {,3}, each with what may follow, for what begins at item `begin`; several are one around the other.
  void read_repeats(size_t begin) {
    for (bool repeated = false;; repeated = true) {
      while (reader_.take("(?#")) reader_.take_until(')');
      std::string repeat;
      for (const std::string_view sign : {"*", "+", "?"}) {
        if (repeat.empty() && reader_.take(sign)) repeat = sign;
      }
      if (!repeat.empty()) {
        if (reader_.take("?")) {
          repeat += '?';
        } else if (reader_.take("+")) {
          repeat += '+';
        }
      } else if (reader_.next_is("{")) {
        repeat = read_interval().value_or("");
      }
      if (repeat.empty()) return;
      if (program_.items.size() - begin > 1 && !repeat.starts_with('?')) program_.repeats_groups = true;
      if (repeated) {
        program_.items.insert(program_.items.begin() + static_cast<std::ptrdiff_t>(begin), {.frame = "(?:"});
        put(")");
      }
      put(repeat);
    }
  }

  // Nothing, and nothing passed, if the brace is one like any other character.
  std::optional<std::string> read_interval() {
    const size_t begin = reader_.at();
    reader_.take("{");
    const std::optional<size_t> least = reader_.take_number();
    const bool comma = reader_.take(",");
    const std::optional<size_t> most = comma ? reader_.take_number() : least;
    if ((!least && !most) || !reader_.take("}")) {
      reader_.go_back(begin);
      return std::nullopt;
    }
    if (least && most && *most < *least) reader_.fail("a repetition that ends before it begins");
    if (last_letter_ == 's' || last_letter_ == 'f') reader_.fail("(?i) with letters that are one letter too");
    std::string repeat = fmt::format("{{{},{}}}", least.value_or(0), most ? fmt::format("{}", *most) : "");
    if (!reader_.next_is("?")) return repeat;
    if (!comma) reader_.fail("? behind a repetition of one number");
    reader_.take("?");
    return repeat + "?";
  }

  RegexReader reader_;
  RegexProgram program_;
  char last_letter_ = 0;  // with (?i), the last character if nothing came behind it
};

}  // namespace

RegexProgram read_regex(std::string_view expression, std::string_view where) {
  if (expression.size() > kMaxRegexBytes) {
    base::fail(where, fmt::format("a regular expression of at most {} bytes", kMaxRegexBytes),
               fmt::format("{}", expression.size()));
  }
  if (base::first_invalid_utf8(expression))
    base::fail(where, "a regular expression in UTF-8", base::quoted(expression));
  return Syntax(expression, where).read();
}

}  // namespace clearhead::text
