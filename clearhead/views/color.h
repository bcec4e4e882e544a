// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace clearhead::views {

// An sRGB colour.
struct Rgb {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

// The colour of a fraction (0 to 1, others are clamped): from near the background, through blue, teal and green to
// yellow on a dark terminal, from near white to indigo on a light one. Lightness changes evenly and in one direction,
// so that colour-blind readers and grey prints keep the order. Source: OKLab, B. Ottosson 2020,
// https://bottosson.github.io/posts/oklab/
Rgb scale_color(double fraction, bool dark);

// Black or white, whichever stands out more on the background: contrast at least 4.5 (WCAG 2.1, 1.4.3).
Rgb text_color_on(Rgb background);

// (L1 + 0.05) / (L2 + 0.05) of the relative luminances, the larger one above.
// Source: WCAG 2.1, definition of contrast ratio.
double contrast(Rgb one, Rgb other);

// Number of the nearest colour (in OKLab) of xterm's palette of 256; the first 16, which themes change, are not used.
int nearest_of_256(Rgb color);

// Where a weight stands on the colour scale: its square root, so that a weight of 1 % can be told from none.
double scale_place(double weight);

}  // namespace clearhead::views
