// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/words.h"

#include <gtest/gtest.h>

#include <set>

#include "clearhead/base/utf8.h"
#include "tests/support/error_text.h"

namespace clearhead::views {
namespace {

// Names in braces, and nothing left open.
std::multiset<std::string> names_in(std::string_view sentence) {
  std::multiset<std::string> names;
  for (size_t at = sentence.find('{'); at != std::string_view::npos; at = sentence.find('{', at + 1)) {
    const size_t end = sentence.find('}', at);
    EXPECT_NE(end, std::string_view::npos) << sentence;
    names.emplace(sentence.substr(at + 1, end - at - 1));
  }
  return names;
}

TEST(Words, EveryLanguageSaysTheSameThings) {
  const Words &english = words_of(Language::en), &chinese = words_of(Language::zh);
  ASSERT_GT(english.all().size(), 40U);
  for (const auto& [name, sentence] : english.all()) {
    ASSERT_TRUE(chinese.all().contains(name)) << name;
    EXPECT_EQ(names_in(sentence), names_in(chinese[name])) << name;
    EXPECT_FALSE(base::first_invalid_utf8(chinese[name]).has_value()) << name;
  }
  EXPECT_EQ(english.all().size(), chinese.all().size());
}

TEST(Words, EnglishNeedsNoMoreThanAscii) {
  for (const auto& [name, sentence] : words_of(Language::en).all())
    for (const char c : sentence) EXPECT_LT(static_cast<unsigned char>(c), 0x7F) << name;
}

TEST(Words, AnUnknownNameIsAnError) {
  EXPECT_EQ(tests::error_text([] { words_of(Language::en)["no such"]; }),
            "[words] expected a sentence of this name; found \"no such\"");
}

}  // namespace
}  // namespace clearhead::views
