// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/pen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace clearhead::views {
namespace {

struct InkColor {
  std::optional<Rgb> dark, light;
  bool bold = false;
};

InkColor color_of(Ink ink) {
  switch (ink) {
    case Ink::plain: return {};
    case Ink::strong: return {{}, {}, true};
    case Ink::title: return {Rgb{122, 204, 255}, Rgb{0, 84, 147}, true};
    case Ink::dim: return {Rgb{128, 135, 150}, Rgb{105, 110, 120}};
    case Ink::query: return {Rgb{122, 204, 255}, Rgb{0, 84, 147}};
    case Ink::key: return {Rgb{255, 209, 102}, Rgb{148, 84, 0}};
    case Ink::number: return {{}, {}};
    case Ink::rule: return {Rgb{72, 78, 92}, Rgb{190, 195, 205}};
    case Ink::special: return {Rgb{150, 130, 170}, Rgb{115, 85, 140}};
  }
  return {};
}

// After Okabe and Ito, "Color Universal Design", 2008: told apart by all kinds of colour vision.
Rgb color_of(HeadKind kind, bool dark) {
  switch (kind) {
    case HeadKind::content: return dark ? Rgb{255, 209, 102} : Rgb{148, 84, 0};
    case HeadKind::previous: return dark ? Rgb{86, 180, 233} : Rgb{0, 104, 168};
    case HeadKind::next: return dark ? Rgb{38, 190, 145} : Rgb{0, 120, 84};
    case HeadKind::self: return dark ? Rgb{225, 140, 190} : Rgb{166, 60, 120};
    case HeadKind::special: return dark ? Rgb{120, 125, 140} : Rgb{125, 130, 140};
    case HeadKind::first: return dark ? Rgb{140, 125, 120} : Rgb{140, 125, 115};
    case HeadKind::punctuation: return dark ? Rgb{235, 120, 50} : Rgb{184, 74, 0};
    case HeadKind::broad: return dark ? Rgb{150, 150, 215} : Rgb{90, 90, 170};
  }
  return {};
}

std::string color_code(Rgb color, bool background, Colors colors) {
  const int base = background ? 48 : 38;
  if (colors == Colors::ansi256) return fmt::format("{};5;{}", base, nearest_of_256(color));
  return fmt::format("{};2;{};{};{}", base, color.red, color.green, color.blue);
}

constexpr std::string_view kHeavyLine = "\xE2\x94\x81", kHalfHeavyLine = "\xE2\x95\xB8";

void repeat(std::string& output, std::string_view text, size_t count) {
  for (size_t i = 0; i < count; ++i) output += text;
}

// Columns of each weight in a bar: rounded running sums, so that the whole never exceeds the bar.
std::vector<size_t> shares(std::span<const float> weights, size_t columns) {
  std::vector<size_t> result;
  double sum = 0;
  size_t used = 0;
  for (const float weight : weights) {
    sum += std::isfinite(weight) ? std::max(0.0F, weight) : 0;
    const auto end =
        std::min(columns, static_cast<size_t>(std::lround(std::min(sum, 1.0) * static_cast<double>(columns))));
    result.push_back(end - used);
    used = end;
  }
  return result;
}

constexpr size_t kStrengths = 4;

Rgb strength_color(size_t strength, bool dark) {
  static constexpr std::array<double, kStrengths> kDark{0.97, 0.75, 0.58, 0.45}, kLight{1.0, 0.75, 0.6, 0.5};
  return scale_color(dark ? kDark[strength] : kLight[strength], dark);
}

// What an empty bar stands on.
Rgb track_color(bool dark) { return dark ? Rgb{58, 63, 75} : Rgb{212, 216, 224}; }

}  // namespace

Text Pen::paint(std::string_view text, std::optional<Rgb> foreground, std::optional<Rgb> background, bool bold) const {
  if (!colored()) return Text(text);
  std::string codes = bold ? "1" : "";
  if (foreground) codes += (codes.empty() ? "" : ";") + color_code(*foreground, false, style_.colors);
  if (background) codes += (codes.empty() ? "" : ";") + color_code(*background, true, style_.colors);
  return Text(text, codes);
}

Text Pen::write(std::string_view text, Ink ink) const {
  const InkColor color = color_of(ink);
  return paint(text, style_.dark ? color.dark : color.light, {}, color.bold);
}

Text Pen::write(std::string_view text, HeadKind kind) const { return paint(text, color_of(kind, style_.dark), {}); }

Text Pen::cell(std::string_view text, double weight) const {
  const Rgb background = scale_color(scale_place(weight), style_.dark);
  return paint(text, text_color_on(background), background);
}

std::string_view Pen::shade(double weight) const {
  static constexpr std::array<std::string_view, 10> kAscii{" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  static constexpr std::array<std::string_view, 5> kBlocks{" ", "\xE2\x96\x91", "\xE2\x96\x92", "\xE2\x96\x93",
                                                           "\xE2\x96\x88"};
  const double place = scale_place(weight);
  if (style_.ascii) return kAscii[std::min<size_t>(9, static_cast<size_t>(place * 10))];
  return kBlocks[std::min<size_t>(4, static_cast<size_t>(place * 5))];
}

Text Pen::bar(double fraction, size_t columns) const {
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto halves = static_cast<size_t>(std::lround(clamped * static_cast<double>(columns) * 2));
  std::string filled, rest;
  if (style_.ascii) {
    repeat(filled, "#", (halves + 1) / 2);
    repeat(rest, ".", columns - (halves + 1) / 2);
  } else {
    repeat(filled, kHeavyLine, halves / 2);
    if (halves % 2 != 0) filled += kHalfHeavyLine;
    repeat(rest, colored() ? kHeavyLine : " ", columns - (halves + 1) / 2);
  }
  const Rgb ink = scale_color(style_.dark ? 0.35 + 0.65 * clamped : 0.45 + 0.55 * clamped, style_.dark);
  return paint(filled, ink, {}) + paint(rest, track_color(style_.dark), {});
}

Text Pen::stacked_bar(std::span<const float> weights, size_t columns) const {
  static constexpr std::array<std::string_view, kStrengths> kAscii{"#", "=", "-", "~"};
  static constexpr std::array<std::string_view, kStrengths> kBlocks{"\xE2\x96\x88", "\xE2\x96\x93", "\xE2\x96\x92",
                                                                    "\xE2\x96\x91"};
  const auto sign = [&](size_t strength) {
    if (style_.ascii) return kAscii[strength];
    return colored() ? kHeavyLine : kBlocks[strength];
  };
  Text output;
  size_t part = 0;
  for (const size_t share : shares(weights, columns)) {
    const size_t strength = std::min<size_t>(part++, kStrengths - 1);
    std::string text;
    repeat(text, sign(strength), share);
    output += paint(text, strength_color(strength, style_.dark), {});
  }
  std::string rest;
  repeat(rest, style_.ascii ? "." : colored() ? kHeavyLine : "\xC2\xB7", columns - output.width());
  return output + paint(rest, track_color(style_.dark), {});
}

Text Pen::in_strength(std::string_view text, size_t index) const {
  return paint(text, strength_color(std::min<size_t>(index, kStrengths - 1), style_.dark), {});
}

std::string_view Pen::glyph(HeadKind kind) const {
  switch (kind) {
    case HeadKind::content: return style_.ascii ? "*" : "\xE2\x97\x8F";
    case HeadKind::previous: return style_.ascii ? "<" : "\xE2\x97\x82";
    case HeadKind::next: return style_.ascii ? ">" : "\xE2\x96\xB8";
    case HeadKind::self: return style_.ascii ? "o" : "\xE2\x97\x86";
    case HeadKind::special: return style_.ascii ? "." : "\xC2\xB7";
    case HeadKind::first: return style_.ascii ? "|" : "\xE2\x94\x82";
    case HeadKind::punctuation: return style_.ascii ? "," : "\xE2\x80\xA2";
    case HeadKind::broad: return style_.ascii ? "~" : "\xE2\x97\x8B";
  }
  return "?";
}

Text Pen::line(size_t columns) const {
  std::string output;
  repeat(output, style_.ascii ? "-" : "\xE2\x94\x80", columns);
  return write(output, Ink::rule);
}

}  // namespace clearhead::views
