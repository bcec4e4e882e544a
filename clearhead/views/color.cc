// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/color.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

namespace clearhead::views {
namespace {

struct Lab {
  double lightness, a, b;
};

double to_linear(uint8_t value) {
  const double v = value / 255.0;
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

double to_gamma(double v) { return v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055; }

// Linear sRGB, not clamped.
std::array<double, 3> linear_of(const Lab& lab) {
  const double l = std::pow(lab.lightness + 0.3963377774 * lab.a + 0.2158037573 * lab.b, 3);
  const double m = std::pow(lab.lightness - 0.1055613458 * lab.a - 0.0638541728 * lab.b, 3);
  const double s = std::pow(lab.lightness - 0.0894841775 * lab.a - 1.2914855480 * lab.b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

Lab lab_of(Rgb color) {
  const double r = to_linear(color.red), g = to_linear(color.green), b = to_linear(color.blue);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

bool in_gamut(const std::array<double, 3>& linear) {
  return std::all_of(linear.begin(), linear.end(), [](double v) { return v >= -1e-4 && v <= 1 + 1e-4; });
}

// Lightness and hue (degrees) are kept; the chroma gives way where sRGB has no such colour.
Rgb from_polar(double lightness, double chroma, double hue) {
  const double angle = hue * std::numbers::pi / 180;
  Lab lab{lightness, chroma * std::cos(angle), chroma * std::sin(angle)};
  while (!in_gamut(linear_of(lab)) && std::hypot(lab.a, lab.b) > 1e-3) lab.a *= 0.97, lab.b *= 0.97;
  const auto linear = linear_of(lab);
  const auto byte = [](double v) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(to_gamma(std::clamp(v, 0.0, 1.0)), 0.0, 1.0)));
  };
  return {byte(linear[0]), byte(linear[1]), byte(linear[2])};
}

struct Stop {
  double chroma, hue;  // at equal distances of the fraction
};

Rgb along(double fraction, double first_lightness, double last_lightness, const std::array<Stop, 6>& stops) {
  const double place = fraction * static_cast<double>(stops.size() - 1);
  const size_t low = std::min(static_cast<size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(low);
  const Stop &from = stops[low], &to = stops[low + 1];
  return from_polar(std::lerp(first_lightness, last_lightness, fraction), std::lerp(from.chroma, to.chroma, part),
                    std::lerp(from.hue, to.hue, part));
}

constexpr std::array<Stop, 6> kDarkStops{
    {{0.035, 285}, {0.11, 275}, {0.12, 235}, {0.12, 185}, {0.17, 140}, {0.17, 103}}};
constexpr std::array<Stop, 6> kLightStops{
    {{0.01, 110}, {0.09, 130}, {0.11, 165}, {0.11, 215}, {0.14, 260}, {0.14, 285}}};

double luminance(Rgb color) {
  return 0.2126 * to_linear(color.red) + 0.7152 * to_linear(color.green) + 0.0722 * to_linear(color.blue);
}

constexpr int kFirstOfPalette = 16;  // themes change those before
constexpr uint8_t kCubeLevels[6] = {0, 95, 135, 175, 215, 255};

Rgb palette_color(int number) {
  if (number >= 232) {
    const auto grey = static_cast<uint8_t>(8 + 10 * (number - 232));
    return {grey, grey, grey};
  }
  const int cube = number - 16;
  return {kCubeLevels[cube / 36], kCubeLevels[cube / 6 % 6], kCubeLevels[cube % 6]};
}

std::array<Lab, 256> palette_in_lab() {
  std::array<Lab, 256> palette{};
  for (int number = kFirstOfPalette; number < 256; ++number)
    palette[static_cast<size_t>(number)] = lab_of(palette_color(number));
  return palette;
}

// As many steps as a byte of colour can tell apart.
using Scale = std::array<Rgb, 256>;

Scale make_scale(double first_lightness, double last_lightness, const std::array<Stop, 6>& stops) {
  Scale scale;
  for (size_t i = 0; i < scale.size(); ++i)
    scale[i] =
        along(static_cast<double>(i) / static_cast<double>(scale.size() - 1), first_lightness, last_lightness, stops);
  return scale;
}

}  // namespace

Rgb scale_color(double fraction, bool dark) {
  static const Scale dark_scale = make_scale(0.25, 0.93, kDarkStops), light_scale = make_scale(0.97, 0.33, kLightStops);
  const double clamped = std::isnan(fraction) ? 0 : std::clamp(fraction, 0.0, 1.0);
  return (dark ? dark_scale : light_scale)[static_cast<size_t>(std::lround(255 * clamped))];
}

double contrast(Rgb one, Rgb other) {
  const double a = luminance(one) + 0.05, b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
}

Rgb text_color_on(Rgb background) {
  constexpr Rgb kBlack{0, 0, 0}, kWhite{255, 255, 255};
  return contrast(background, kBlack) >= contrast(background, kWhite) ? kBlack : kWhite;
}

int nearest_of_256(Rgb color) {
  static const std::array<Lab, 256> palette = palette_in_lab();
  const Lab wanted = lab_of(color);
  int best = kFirstOfPalette;
  double best_distance = std::numeric_limits<double>::infinity();
  for (int number = kFirstOfPalette; number < 256; ++number) {
    const Lab& lab = palette[static_cast<size_t>(number)];
    const double distance = std::hypot(lab.lightness - wanted.lightness, lab.a - wanted.a, lab.b - wanted.b);
    if (distance < best_distance) best = number, best_distance = distance;
  }
  return best;
}

double scale_place(double weight) { return weight > 0 ? std::sqrt(std::min(weight, 1.0)) : 0; }

}  // namespace clearhead::views
