# SPDX-License-Identifier: Apache-2.0
"""Curves over logarithmic axes as an SVG picture, nothing but text."""
import html
import math

COLORS = ["#d1495b", "#edae49", "#00798c", "#66a182"]
PANEL, GAP, LEFT, TOP, BOTTOM = 360, 90, 70, 60, 60
FONT = "font-family=\"system-ui, 'DejaVu Sans', sans-serif\""


class Axis:
    """Logarithmic, from the power of base below the least to the one above the most."""

    def __init__(self, values, base, begin, end):
        self.base, self.begin, self.end = base, begin, end
        self.low = math.floor(math.log(min(values), base) + 1e-9)
        self.high = max(self.low + 1, math.ceil(math.log(max(values), base) - 1e-9))

    def place(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return [self.base ** power for power in range(self.low, self.high + 1)]


def text(x, y, words, size=12, anchor="middle", color="#333", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" {more}>'
            f"{html.escape(words)}</text>")


def panel(left, title, curves, names, say):
    """curves: name -> [(x, y)]; names: name -> colour; say: a number of the y axis in words."""
    points = [point for curve in curves.values() for point in curve]
    across = Axis([x for x, _ in points], 2, left, left + PANEL)
    up = Axis([y for _, y in points], 10, TOP + PANEL, TOP)
    parts = [text(left + PANEL / 2, TOP - 14, title, 14)]
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + PANEL}" stroke="#eee"/>')
        parts.append(text(x, TOP + PANEL + 16, f"{tick:,.0f}" if tick < 1024 else f"{tick / 1024:.0f}k", 10))
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(left - 6, y + 4, say(tick), 10, "end"))
    parts.append(f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#999"/>')
    for name, curve in curves.items():
        places = [(across.place(x), up.place(y)) for x, y in curve]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{names[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{names[name]}"/>' for x, y in places]
    parts.append(text(left + PANEL / 2, TOP + PANEL + 34, "keys", 12))
    return parts


def seconds_in_words(value):
    for unit, size in (("s", 1), ("ms", 1e-3), ("\u00b5s", 1e-6)):
        if value >= size * .999:
            return f"{value / size:.0f} {unit}"
    return f"{value * 1e9:.0f} ns"


def bytes_in_words(value):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size * .999:
            return f"{value / size:.0f} {unit}"
    return f"{value:.0f} B"


def growth_picture(rows, title):
    """rows: {"length", "seconds": {name: s}, "bytes": {name: b}}"""
    names = dict(zip(rows[0]["seconds"], COLORS))
    curves = {key: {name: [(row["length"], row[key][name]) for row in rows if row[key].get(name)] for name in names}
              for key in ("seconds", "bytes")}
    width, height = LEFT + 2 * PANEL + GAP + 30, TOP + PANEL + BOTTOM + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {FONT} '
             f'aria-label="{html.escape(title)}">', '<rect width="100%" height="100%" fill="white"/>',
             text(width / 2, 22, title, 15)]
    for place, (key, words, say) in enumerate((("seconds", "time of a run", seconds_in_words),
                                               ("bytes", "working memory, beyond inputs and output", bytes_in_words))):
        shown = {name: curve for name, curve in curves[key].items() if curve}
        parts += panel(LEFT + place * (PANEL + GAP), words, shown, names, say)
    step = (width - LEFT) / len(names)
    for place, (name, color) in enumerate(names.items()):
        x, y = LEFT + place * step, height - 16
        parts.append(f'<line x1="{x:.0f}" y1="{y}" x2="{x + 22:.0f}" y2="{y}" stroke="{color}" stroke-width="3"/>')
        parts.append(text(x + 28, y + 4, name, 12, "start"))
    return "\n".join(parts + ["</svg>", ""]).encode("ascii", "xmlcharrefreplace").decode()
