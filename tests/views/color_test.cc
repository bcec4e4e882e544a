// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/color.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "clearhead/views/pen.h"

namespace clearhead::views {
namespace {

using Linear = std::array<double, 3>;

Linear linear(Rgb color) {
  const auto one = [](uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return {one(color.red), one(color.green), one(color.blue)};
}

// CIE L* (0 to 100).
double lightness(const Linear& color) {
  const double y = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2];
  return y > 0.008856 ? 116 * std::cbrt(y) - 16 : 903.3 * y;
}

using Matrix = std::array<std::array<double, 3>, 3>;

// Machado, Oliveira and Fernandes 2009, severity 1, on linear sRGB.
constexpr Matrix kProtanopia{
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kTritanopia{
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

Linear seen_with(const Matrix& vision, const Linear& color) {
  Linear seen{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 3; ++i) seen[row] += vision[row][i] * color[i];
    seen[row] = std::clamp(seen[row], 0.0, 1.0);
  }
  return seen;
}

TEST(ColorScale, LightnessGoesOneWayInEvenSteps) {
  for (const bool dark : {true, false}) {
    const double total = lightness(linear(scale_color(1, dark))) - lightness(linear(scale_color(0, dark)));
    EXPECT_GT(std::abs(total), 60) << dark;
    EXPECT_EQ(total > 0, dark);
    for (int i = 0; i < 20; ++i) {
      const double step =
          lightness(linear(scale_color((i + 1) / 20.0, dark))) - lightness(linear(scale_color(i / 20.0, dark)));
      EXPECT_GT(step / total, 0.4 / 20) << dark << " " << i;
      EXPECT_LT(step / total, 1.6 / 20) << dark << " " << i;
    }
  }
}

TEST(ColorScale, KeepsItsOrderForColourBlindReaders) {
  for (const bool dark : {true, false})
    for (const Matrix& vision : {kProtanopia, kDeuteranopia, kTritanopia})
      for (int i = 0; i < 20; ++i) {
        const double one = lightness(seen_with(vision, linear(scale_color(i / 20.0, dark))));
        const double next = lightness(seen_with(vision, linear(scale_color((i + 1) / 20.0, dark))));
        EXPECT_GT(dark ? next - one : one - next, 0.5) << dark << " " << i;
      }
}

TEST(ColorScale, NumbersInCellsAreReadable) {
  for (const bool dark : {true, false})
    for (int i = 0; i <= 200; ++i) {
      const Rgb background = scale_color(i / 200.0, dark);
      EXPECT_GE(contrast(background, text_color_on(background)), 4.5) << dark << " " << i;
    }
}

TEST(ColorScale, AnythingElseIsClamped) {
  EXPECT_EQ(scale_color(-3, true), scale_color(0, true));
  EXPECT_EQ(scale_color(7, true), scale_color(1, true));
  EXPECT_EQ(scale_color(std::numeric_limits<double>::quiet_NaN(), false), scale_color(0, false));
  EXPECT_EQ(scale_place(-1), 0);
  EXPECT_EQ(scale_place(std::numeric_limits<double>::infinity()), 1);
  EXPECT_EQ(scale_place(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_DOUBLE_EQ(scale_place(0.25), 0.5);
}

TEST(Contrast, OfBlackAndWhiteIs21) {
  EXPECT_DOUBLE_EQ(contrast({0, 0, 0}, {255, 255, 255}), 21);
  EXPECT_DOUBLE_EQ(contrast({9, 9, 9}, {9, 9, 9}), 1);
}

TEST(Palette, FindsColoursThatItHas) {
  EXPECT_EQ(nearest_of_256({0, 0, 0}), 16);
  EXPECT_EQ(nearest_of_256({255, 255, 255}), 231);
  EXPECT_EQ(nearest_of_256({255, 0, 0}), 196);
  EXPECT_EQ(nearest_of_256({95, 135, 175}), 67);
  EXPECT_EQ(nearest_of_256({8, 8, 8}), 232);
  EXPECT_EQ(nearest_of_256({128, 128, 128}), 244);
}

TEST(Pen, WritesTheCodesOfTheStyle) {
  Style style;
  EXPECT_EQ(Pen(style).cell(" 9 ", 1).str(), " 9 ");
  style.colors = Colors::truecolor;
  const Rgb full = scale_color(1, true);
  EXPECT_EQ(Pen(style).cell("9", 1).str(), "\x1b[38;2;0;0;0;48;2;" + std::to_string(full.red) + ";" +
                                               std::to_string(full.green) + ";" + std::to_string(full.blue) +
                                               "m9\x1b[0m");
  style.colors = Colors::ansi256;
  EXPECT_EQ(Pen(style).paint("a", Rgb{255, 0, 0}, {}, true).str(), "\x1b[1;38;5;196ma\x1b[0m");
}

TEST(Pen, BarsAreExactlyAsWideAsAsked) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  for (const Colors colors : {Colors::none, Colors::truecolor})
    for (const bool ascii : {false, true}) {
      const Pen pen(Style{.colors = colors, .ascii = ascii});
      for (const double fraction : {-1.0, 0.0, 0.03, 0.5, 0.97, 1.0, 2.0, nothing})
        EXPECT_EQ(pen.bar(fraction, 8).width(), 8U);
      for (const std::vector<float>& parts :
           {std::vector<float>{}, {1}, {0.5F, 0.5F}, {0.3F, 0.3F, 0.3F, 0.05F, 0.05F}, {2, 2}, {-1, 0.5F}})
        EXPECT_EQ(pen.stacked_bar(parts, 8).width(), 8U);
    }
  const Pen ascii(Style{.ascii = true});
  EXPECT_EQ(ascii.bar(0.5, 8).str(), "####....");
  EXPECT_EQ(ascii.stacked_bar(std::vector<float>{0.5F, 0.25F, 0.125F}, 8).str(), "####==-.");
}

TEST(Pen, EveryKindHasItsOwnGlyph) {
  for (const bool ascii : {false, true}) {
    const Pen pen(Style{.ascii = ascii});
    std::vector<std::string_view> glyphs;
    for (size_t kind = 0; kind < kHeadKinds; ++kind) glyphs.push_back(pen.glyph(static_cast<HeadKind>(kind)));
    for (size_t i = 0; i < glyphs.size(); ++i) {
      EXPECT_EQ(display_width(glyphs[i]), 1U);
      for (size_t j = 0; j < i; ++j) EXPECT_NE(glyphs[i], glyphs[j]);
    }
  }
}

}  // namespace
}  // namespace clearhead::views
