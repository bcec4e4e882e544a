// SPDX-License-Identifier: Apache-2.0
// Regular expressions against the tokenizers library (golden/make_regex_golden.py), against our own matchers, and what
// is hostile in them.
#include "clearhead/text/regex.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "clearhead/base/memory.h"
#include "clearhead/text/code_set.h"
#include "clearhead/text/regex_syntax.h"
#include "clearhead/text/word_patterns.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_clock.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text {
namespace {

using clearhead::tests::error_text;

constexpr RegexEngine kEngines[] = {RegexEngine::kCompiled, RegexEngine::kInterpreted};

// Where each match that is not empty begins and ends.
std::vector<uint32_t> ends(const Pattern& pattern, std::string_view text) {
  std::vector<uint32_t> result;
  for_each_part(pattern, text, {0, static_cast<uint32_t>(text.size())}, [&](Span span, bool is_match) {
    if (is_match && span.size() > 0) result.insert(result.end(), {span.begin, span.end});
  });
  return result;
}

TEST(Regex, FindsWhatTheLibraryFinds) {
  const auto rows = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/regex_golden.json", 1 << 20));
  ASSERT_GE(rows.size(), 100u);
  for (const auto& row : rows) {
    const auto expression = row[0].get<std::string>(), text = row[1].get<std::string>();
    for (const RegexEngine engine : kEngines) {
      EXPECT_EQ(ends(*regex_by_backtracking(expression, "t", engine), text), row[2].get<std::vector<uint32_t>>())
          << expression << " in " << text;
    }
  }
}

constexpr std::string_view kWords[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

TEST(RegexLaw, AgreesWithOurOwnMatchers) {
  for (const std::string_view expression : kWords) {
    const auto own = known_word_pattern(expression), by_engine = regex_by_backtracking(expression, "t");
    ASSERT_TRUE(own);
    EXPECT_TRUE(rc::check([&] {
      const std::vector<std::string> parts = {"a",      "Re",     "'s",         "'LL",    "'\u017f", " ",      "  ",
                                              "\t",     "\n",     "\r",         "1",      "22",      "!",      "-",
                                              "\u00e9", "\u0301", "\u4f60",     "\u0661", "'",       "\u3000", "\u0085",
                                              "\u180e", "\u2028", "\U0001f600", "\u00bd", "\u2160"};
      std::string text;
      for (const auto& part : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts))) text += part;
      RC_ASSERT(ends(*own, text) == ends(*by_engine, text));
    }));
  }
}

TEST(RegexLaw, EveryCodePointIsOfOneCategory) {
  std::vector<int> count(0x110000);
  for (const char* name : {"L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cn"}) {
    const CodeSet set = code_set_of(name).value();
    for (const auto& range : set.ranges()) {
      for (char32_t c = range.first; c <= range.last; ++c) ++count[c];
    }
  }
  for (char32_t c = 0; c < count.size(); ++c) {
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_TRUE(surrogate || count[c] == 1) << static_cast<uint32_t>(c);
  }
}

TEST(Regex, FindsFromAPlaceOn) {
  const auto regex = regex_by_backtracking(R"((?<=\u00e9)a|b)", "t");
  EXPECT_EQ(regex->find("\u00e9a b", 0), (Span{2, 3}));
  EXPECT_EQ(regex->find("\u00e9a b", 2), (Span{2, 3})) << "what is before the place is looked at";
  EXPECT_EQ(regex->find("\u00e9a b", 3), (Span{4, 5}));
  EXPECT_EQ(regex->find("\u00e9a b", 5), std::nullopt);
}

TEST(Regex, EmptyMatchesAreMatches) {
  const auto all = [](const char* expression, const char* text) {
    return regex_by_backtracking(expression, "t")->find_all(text).value();
  };
  EXPECT_EQ(all("x*", "axb"), (std::vector<Span>{{0, 0}, {1, 2}, {3, 3}}));
  EXPECT_EQ(all("$", "\u00e9"), (std::vector<Span>{{2, 2}}));
}

TEST(Regex, WhatIsRefusedByName) {
  const auto error_of = [](const std::string& expression) {
    return error_text([&] { regex_by_backtracking(expression, "t"); });
  };
  const auto refused = [](const std::string& what, size_t at, const std::string& expression) {
    return "[t] expected a regular expression that is known here; found " + what + " at byte " + std::to_string(at) +
           " of \"" + expression + "\"";
  };
  const std::string unknown = "a backslash that is not known";
  for (const char* expression : {"a\\1", "a\\K", "a\\G", "a\\X", "a\\k<n>", "a\\g<n>", "a\\y", "a\\pL"}) {
    EXPECT_EQ(error_of(expression), refused(unknown, 2, expression)) << expression;
  }
  EXPECT_EQ(error_of("(a"), refused("no ) behind a group", 2, "(a"));
  EXPECT_EQ(error_of("a)"), refused("a ) without its (", 1, "a)"));
  EXPECT_EQ(error_of("[a"), refused("no ] behind a class", 2, "[a"));
  EXPECT_EQ(error_of("[b-a]"), refused("a stretch that ends before it begins", 4, "[b-a]"));
  EXPECT_EQ(error_of("*a"), refused("nothing to repeat", 0, "*a"));
  EXPECT_EQ(error_of("{2}"), refused("nothing to repeat", 3, "{2}"));
  EXPECT_EQ(error_of("^*"), refused("nothing to repeat", 1, "^*"));
  EXPECT_EQ(error_of("a{1001}"), refused("a number above 1000", 5, "a{1001}"));
  EXPECT_EQ(error_of("a{2,1}"), refused("a repetition that ends before it begins", 6, "a{2,1}"));
  EXPECT_EQ(error_of("a{2}?"), refused("? behind a repetition of one number", 4, "a{2}?"));
  EXPECT_EQ(error_of("(?s)a"), refused("a group of a kind that is not known", 1, "(?s)a"));
  EXPECT_EQ(error_of("(?~a)"), refused("a group of a kind that is not known", 1, "(?~a)"));
  EXPECT_EQ(error_of("(?i)ss"), refused("(?i) with letters that are one letter too", 6, "(?i)ss"));
  EXPECT_EQ(error_of("(?i)(s)(t)"), refused("(?i) with letters that are one letter too", 9, "(?i)(s)(t)"));
  EXPECT_EQ(error_of("(?i)\u00e9"), refused("(?i) with more than ASCII", 6, "(?i)\u00e9"));
  EXPECT_EQ(error_of("\\p{Foo}"), refused("the property \"Foo\"", 3, "\\p{Foo}"));
  EXPECT_EQ(error_of("\\xff"), refused("a byte that is no character", 4, "\\xff"));
  EXPECT_EQ(error_of("\\x{d800}"), refused("no code point", 8, "\\x{d800}"));
  EXPECT_EQ(error_of("(?<=a+)b"),
            "[t] expected a regular expression that PCRE2 can compile; found \"(?<=a+)b\": lookbehind assertion is not "
            "fixed length");
  EXPECT_EQ(error_of("a\xff"), "[t] expected a regular expression in UTF-8; found \"a\\xff\"");
  EXPECT_EQ(error_of(std::string(kMaxRegexBytes + 1, 'a')),
            "[t] expected a regular expression of at most 8192 bytes; found 8193");
  std::string many;
  for (char32_t c = 0x4e00; c < 0x4e00 + 300; ++c) many += "\\x{" + nlohmann::json(c).dump() + "}";
  EXPECT_EQ(error_of(many),
            "[t] expected a regular expression that tells at most 256 kinds of characters apart; found more");
  EXPECT_NE(error_of(std::string(1000, '(')), "");
  EXPECT_NE(error_of(std::string(1000, '[')), "");
}

std::string many(size_t times, std::string_view part) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

// The error of looking for all matches, which may take no more than twice the time that regex.h states.
std::string tried(const std::string& expression, const std::string& text, RegexEngine engine) {
  const auto regex = regex_by_backtracking(expression, "t", engine);
  const clearhead::tests::ThreadClock clock;
  std::string error = error_text([&] { regex->find_all(text); });
  EXPECT_LT(clock.seconds(), 2 * (1 + 4e-6 * static_cast<double>(text.size())))
      << expression << (engine == RegexEngine::kCompiled ? "" : ", interpreted");
  return error;
}

// Each ends soon, with matches or with an Error: memory, depth and time are bounded.
TEST(Regex, HostileTextsEndSoon) {
  const std::string spaces(120'000, ' '), letters(20'000, 'a');
  for (const RegexEngine engine : kEngines) {
    EXPECT_NE(tried(R"(\s+$)", spaces + "b x", engine).find(" can be looked for in; found one that stops it at byte "),
              std::string::npos);
    tried(R"(\s*x)", spaces + "b x", engine);
    EXPECT_NE(tried("(?:a*)*b", letters + " b", engine), "no error");
    // Steps that each go over all that is left, in few places and in all.
    EXPECT_NE(tried("[xy]|(?>(?>a*[bc]|a)*+)z|a", std::string(5000, 'a'), engine), "no error");
    tried("[xy]|(?>a*[bc]|a)*+", std::string(150'000, 'a'), engine);
  }
  const RegexEngine engine = RegexEngine::kCompiled;
  for (const char* expression : {R"((?:\s|\n)*x)", R"(\s*x|\s)", R"((?>\s*)x)"})
    tried(expression, spaces + "b x", engine);
  EXPECT_NE(tried("(?:a|a)*b", std::string(100, 'a') + " b", engine), "no error");
  EXPECT_NE(tried("(?:a+)+b", std::string(5000, 'a') + " b", engine), "no error");
  EXPECT_NE(tried("[xy]|(?>(?>a*[bc]|a)*+)z|a", letters, engine), "no error");
  EXPECT_NE(tried(many(40, "(?:a|)") + "b", letters + " b", engine), "no error");
  EXPECT_NE(tried(many(40, "a?") + "b", letters + " b", engine), "no error");
  // Repetition that never gives back, of much that is looked for in vain.
  std::string ways;
  for (char c = 'a'; c <= 'z'; ++c) ways += std::string("ab") + c + "|aac" + c + "|";
  tried("(?:(?:" + ways + "a)*+z|" + ways + "a)*+z|a", letters, engine);
  tried("(?=a*a*a*b)|(?!(?:a|aa)*b)a", letters + " b", engine);
}

// What costs one pass for each run is no hard place, and what costs its square in short runs not too many of them.
// Words of which each alone stays within the time of one.
TEST(Regex, AllWordsOfATextShareItsTime) {
  nlohmann::json description = tests::small_json();
  description["pre_tokenizer"] = nlohmann::json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "WhitespaceSplit"},
    {"type": "Split", "pattern": {"Regex": "[xy]|(?>(?>a*[bc]|a)*+)z|a"}, "behavior": "Isolated", "invert": false}]})");
  const Tokenizer tokenizer = tests::from(description);
  const std::string text = many(40, std::string(1500, 'a') + " ");
  const clearhead::tests::ThreadClock clock;
  EXPECT_NE(error_text([&] { tokenizer.encode_ids(text); }), "no error");
  EXPECT_LT(clock.seconds(), 2 * (1 + 4e-6 * static_cast<double>(text.size())));
}

TEST(Regex, HarmlessTextsPass) {
  const std::string spaces(1'000'000, ' '), letters(1'000'000, 'a'), runs = many(300, std::string(1000, ' ') + "x");
  const std::string in_use[] = {
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"(\s+(?!\S)|\s+|\S+)", R"(\s*[\r\n]+|\s+)"};
  for (const RegexEngine engine : kEngines) {
    for (const std::string& expression : in_use) {
      for (const std::string& text : {spaces, letters, runs, spaces + "b" + spaces}) {
        EXPECT_EQ(tried(expression, text, engine), "no error") << expression;
      }
    }
    EXPECT_EQ(tried(R"(\s+$|a)", runs.substr(0, 47'000), engine), "no error");
    EXPECT_EQ(tried("(?:a|b)+", letters, engine), "no error");
  }
  EXPECT_EQ(tried(R"(\s+$|a)", runs, RegexEngine::kCompiled), "no error");
}

TEST(CodeSet, JoinsWhatTouches) {
  CodeSet set(5, 7);
  set.add(1, 3);
  EXPECT_EQ(set.ranges().size(), 2u);
  set.add(4, 4);
  EXPECT_EQ(set, CodeSet(1, 7));
  set.add(0x10ffff, 0x10ffff);
  EXPECT_EQ(set.complement().ranges(), (std::vector<CodeSet::Range>{{0, 0}, {8, 0x10fffe}}));
  EXPECT_EQ(set.complement().complement(), set);
  EXPECT_EQ(set.intersection(CodeSet(3, 9)), CodeSet(3, 7));
  EXPECT_TRUE(set.contains(7) && !set.contains(8) && set.contains(CodeSet(2, 3)) && !set.contains(CodeSet(7, 8)));
  EXPECT_EQ(code_set_of("Uppercase Letter"), code_set_of("lu"));
  EXPECT_EQ(code_set_of("nothing"), std::nullopt);
}

}  // namespace
}  // namespace clearhead::text
