// SPDX-License-Identifier: Apache-2.0
// The pictures of data/pictures/ are what people see. After a wanted change, write them anew and look at them:
//
//     CLEARHEAD_WRITE_PICTURES=1 bin/views_test --gtest_filter='Picture.*'
#include <gtest/gtest.h>

#include <cstdlib>

#include "clearhead/views/attention_map.h"
#include "tests/views/traces.h"

namespace clearhead::views {
namespace {

using tests::cat_trace;
using tests::cyclic_trace;
using tests::lines_of;
using tests::without_colors;

void expect_picture(const std::string& name, const std::string& picture) {
  const std::string path = CLEARHEAD_TEST_DATA "/pictures/" + name;
  if (std::getenv("CLEARHEAD_WRITE_PICTURES") != nullptr) tests::write_bytes(path, picture);
  EXPECT_EQ(picture, tests::read_bytes(path)) << "to accept the change: CLEARHEAD_WRITE_PICTURES=1 bin/views_test "
                                                 "--gtest_filter='Picture.*'";
}

Style style_of(Colors colors, bool ascii = false, size_t width = 80, Language language = Language::en) {
  Style style;
  style.colors = colors;
  style.ascii = ascii;
  style.width = width;
  style.language = language;
  return style;
}

std::string overview_of(const capture::Trace& trace, const Style& style, const MapOptions& options = {}) {
  return draw_overview(trace, in_order_of_telling(summarize_heads(trace)), options, style);
}

std::string map_of(const capture::Trace& trace, size_t layer, size_t head, const Style& style,
                   const MapOptions& options = {}) {
  return draw_map(attention_map(trace, layer, head, options), options, style);
}

std::vector<Style> many_styles() {
  std::vector<Style> styles;
  for (const size_t width : {0, 40, 61, 80, 100, 250})
    for (const Colors colors : {Colors::none, Colors::ansi256, Colors::truecolor})
      for (const bool ascii : {false, true})
        for (const Language language : {Language::en, Language::zh})
          styles.push_back(style_of(colors, ascii, width, language));
  return styles;
}

// Every picture of a trace.
std::vector<std::string> pictures_of(const capture::Trace& trace, const Style& style, const MapOptions& options) {
  const auto heads = in_order_of_telling(summarize_heads(trace));
  MapOptions from = options;
  from.from = 1;
  return {draw_overview(trace, heads, options, style),
          map_of(trace, 0, 0, style, options),
          map_of(trace, 0, 0, style, from),
          draw_row(trace, 1, heads, options, style),
          draw_head_table(trace, heads, style),
          draw_tokens(trace.info().tokens, style)};
}

TEST(Picture, OverviewOfTheCat) {
  const auto trace = cat_trace();
  expect_picture("overview.ascii.txt", overview_of(trace, style_of(Colors::none, true)));
  expect_picture("overview.truecolor.txt", overview_of(trace, style_of(Colors::truecolor)));
  expect_picture("overview.zh.txt", overview_of(trace, style_of(Colors::none, false, 100, Language::zh)));
}

TEST(Picture, MapOfTheCat) {
  const auto trace = cat_trace();
  expect_picture("map.ascii.txt", map_of(trace, 5, 11, style_of(Colors::none, true)));
  expect_picture("map.plain.txt", map_of(trace, 5, 11, style_of(Colors::none)));
  expect_picture("map.256.txt", map_of(trace, 5, 3, style_of(Colors::ansi256)));
}

TEST(Picture, WhereSatLooks) {
  const auto trace = cat_trace();
  MapOptions options;
  expect_picture("row.plain.txt",
                 draw_row(trace, 3, in_order_of_telling(summarize_heads(trace)), options, style_of(Colors::none)));
  options.from = 3;
  options.hide_special = true;
  expect_picture("map_row.plain.txt", map_of(trace, 5, 11, style_of(Colors::none), options));
}

TEST(Picture, TablesOfTheCat) {
  const auto trace = cat_trace();
  expect_picture("heads.ascii.txt", draw_head_table(trace, summarize_heads(trace), style_of(Colors::none, true, 100)));
  expect_picture("tokens.plain.txt", draw_tokens(trace.info().tokens, style_of(Colors::none)));
}

TEST(Picture, MapOfChineseAndEmoji) {
  const auto trace = cyclic_trace(tests::wide_texts(), 2, 3);
  expect_picture("map_wide.plain.txt", map_of(trace, 0, 1, style_of(Colors::none, false, 100, Language::zh)));
  expect_picture("map_wide.ascii.txt", map_of(trace, 0, 1, style_of(Colors::none, true)));
}

TEST(Overview, SaysWhatAPersonAsks) {
  const std::string picture = overview_of(cat_trace(), style_of(Colors::none));
  EXPECT_NE(picture.find("layer 5 head 11: sat looks at cat, 89 %"), std::string::npos);
  EXPECT_NE(picture.find("previous token: layer 0 head 2"), std::string::npos);
  const size_t lines = lines_of(picture).size();
  EXPECT_GE(lines, 24U);
  EXPECT_LE(lines, 40U);
}

TEST(Overview, StaysOnOneScreenForAnyText) {
  for (const size_t n : {1, 2, 12, 60, 300}) {
    const auto trace = cyclic_trace(std::vector<std::string>(n, "word"), 6, 12);
    EXPECT_LE(lines_of(overview_of(trace, style_of(Colors::none))).size(), 40U) << n;
  }
  const auto deep = cyclic_trace({"[CLS]", "a", "b", ".", "[SEP]"}, 48, 25);
  EXPECT_LE(lines_of(overview_of(deep, style_of(Colors::none))).size(), 40U);
}

TEST(Map, SaysWhereATokenLooks) {
  const std::string picture = map_of(cat_trace(), 5, 11, style_of(Colors::none, true));
  EXPECT_NE(picture.find("sat   -> cat 89 %, [CLS] 5 %, mat 3 %, rest 3 %"), std::string::npos);
}

TEST(Map, TopIsTheNumberOfKeysNamed) {
  MapOptions options;
  options.top = 1;
  EXPECT_NE(map_of(cat_trace(), 5, 11, style_of(Colors::none, true), options).find("sat   -> cat 89 %, rest 11 %"),
            std::string::npos);
}

TEST(Map, EveryRowIsEquallyWide) {
  for (const Style& style : many_styles()) {
    for (const size_t n : {5, 17, 60}) {
      std::vector<std::string> texts = tests::wide_texts();
      while (texts.size() < n) texts.insert(texts.end() - 1, texts.begin() + 1, texts.end() - 1);
      texts.resize(n);
      const auto trace = cyclic_trace(texts, 1, 2);
      Style colored = style;
      if (colored.colors == Colors::none) continue;  // trailing spaces are cut there
      const auto lines = lines_of(without_colors(map_of(trace, 0, 1, colored)));
      // The map stands between the first and the second empty line; its names are above it.
      const auto begin = std::find(lines.begin(), lines.end(), "") + 1;
      const auto end = std::find(begin, lines.end(), "");
      ASSERT_GT(end - begin, 3);
      const size_t width = display_width(*(end - 1));
      const auto rows = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(n / 2), end - begin - 1);
      for (auto line = end - rows; line != end; ++line) EXPECT_EQ(display_width(*line), width) << *line;
    }
  }
}

TEST(Map, StaysBoundedForHundredsOfTokens) {
  const auto trace = cyclic_trace(std::vector<std::string>(400, "word"), 1, 1);
  for (const Style& style : many_styles()) {
    const std::string picture = map_of(trace, 0, 0, style);
    EXPECT_LE(lines_of(picture).size(), 80U);
    EXPECT_LE(picture.size(), 300000U);
  }
  EXPECT_NE(map_of(trace, 0, 0, style_of(Colors::truecolor)).find("largest weight among 6 \u00d7 6 pairs"),
            std::string::npos);
}

TEST(Pictures, FitTheWidthInEveryStyle) {
  for (const auto& texts :
       {tests::wide_texts(), std::vector<std::string>(50, "extraordinarily-long-token-that-never-ends")}) {
    const auto trace = cyclic_trace(texts, 2, 3);
    for (const Style& style : many_styles())
      for (const std::string& picture : pictures_of(trace, style, {}))
        for (const std::string& line : lines_of(without_colors(picture)))
          EXPECT_LE(display_width(line), std::max<size_t>(style.width, 40)) << line;
  }
}

TEST(Pictures, NoTokenReachesTheTerminal) {
  auto trace_info = tests::info_of(tests::tokens_of({"\x1b[31m", "\u202eevil", "a\nb", "\x9b", "\u200b", " ",
                                                     ""
                                                     "x"}),
                                   1, 2);
  trace_info.model = "bad\x1b]0;title\x07";
  capture::Trace trace(trace_info);
  tensor::Tensor weights(tensor::Shape{1, 2, 7, 7});
  for (float& weight : weights.as<float>()) weight = 1 / 7.0F;
  trace.add(capture::Stage::weights, 0, std::move(weights));
  for (const Style& style : many_styles()) {
    for (const std::string& picture : pictures_of(trace, style, {})) {
      for (const std::string& line : lines_of(without_colors(picture))) {
        EXPECT_EQ(printable(line, style.language == Language::zh ? Style{} : style), line);
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
      }
      EXPECT_TRUE(style.colors != Colors::none || picture.find('\x1b') == std::string::npos);
    }
  }
}

TEST(Pictures, OfOneTokenOrOfNothingToSee) {
  for (const Style& style : many_styles()) {
    EXPECT_FALSE(map_of(tests::trace_of({"a"}, {{1}}), 0, 0, style).empty());
    MapOptions hidden;
    hidden.hide_special = true;
    EXPECT_FALSE(map_of(tests::trace_of({"[CLS]"}, {{1}}), 0, 0, style, hidden).empty());
    EXPECT_FALSE(overview_of(tests::trace_of({"[CLS]"}, {{1}}), style).empty());
  }
  const std::string blind = map_of(tests::trace_of({"a", "b"}, {{0, 0, 1, 0}}), 0, 0, style_of(Colors::none));
  EXPECT_NE(blind.find("a \u2192 may see nothing"), std::string::npos);
}

TEST(Pictures, SayWhatWasHiddenAndHowWordsWereJoined) {
  MapOptions options;
  options.hide_special = true;
  options.words = true;
  for (const std::string& picture : {map_of(cat_trace(), 5, 3, style_of(Colors::none, false, 120), options),
                                     overview_of(cat_trace(), style_of(Colors::none, false, 120), options)}) {
    EXPECT_NE(picture.find("Special tokens are hidden: they took"), std::string::npos);
    EXPECT_NE(picture.find("summed over the pieces looked at"), std::string::npos);
    EXPECT_EQ(picture.find("[CLS]"), std::string::npos);
  }
}

TEST(Pictures, LightAndDarkDiffer) {
  Style style = style_of(Colors::truecolor);
  const std::string dark = map_of(cat_trace(), 5, 11, style);
  style.dark = false;
  EXPECT_NE(map_of(cat_trace(), 5, 11, style), dark);
  EXPECT_EQ(without_colors(map_of(cat_trace(), 5, 11, style)), without_colors(dark));
}

}  // namespace
}  // namespace clearhead::views
