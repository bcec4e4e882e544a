#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep what documents show equal to what the program prints.

    update_docs.py [--check] [--program build/bin/clearhead] [DOCUMENT...]

Two kinds of places in README.md, ARCHITECTURE.md and docs/*.md are filled in by running a command:

    <!-- run: clearhead lesson --toy --step tokens -->
    (a fenced block, made from standard output)
    <!-- end -->

    <!-- picture: docs/pictures/attend.svg: clearhead attend "The cat sat on the mat" -->

The second writes an SVG picture of the terminal. With --check nothing is written; the first difference ends with exit code 1.
"""
import argparse, difflib, html, os, re, shlex, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = re.compile(r"(<!-- run: (?P<command>.+?) -->\n).*?(<!-- end -->)", re.S)
PICTURE = re.compile(r"<!-- picture: (?P<path>\S+): (?P<command>.+?) -->")
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
CELL, LINE, MARGIN = 8.4, 18, 16
BACKGROUND, FOREGROUND = "#14161c", "#e6e6e6"


def run(command, program, **variables):
    words = shlex.split(command)
    if words[0] != "clearhead":
        sys.exit(f"[docs] expected a command of clearhead; found {command!r}")
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS")}
    environment.update({"LC_ALL": "C.UTF-8", "COLUMNS": "96", **variables})
    done = subprocess.run([str(program), *words[1:]], capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        sys.exit(f"[docs] expected `{command}` to succeed; it ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def palette(index):
    """Colour of xterm's palette of 256, from 16 on."""
    if index >= 232:
        level = 8 + 10 * (index - 232)
        return f"#{level:02x}{level:02x}{level:02x}"
    steps = [0, 95, 135, 175, 215, 255]
    index -= 16
    return "#%02x%02x%02x" % (steps[index // 36], steps[index // 6 % 6], steps[index % 6])


class Ink:
    def __init__(self): self.reset()

    def reset(self): self.foreground, self.background, self.bold = FOREGROUND, None, False

    def apply(self, code):
        numbers = [int(n or 0) for n in code.split(";")]
        while numbers:
            first = numbers.pop(0)
            if first == 0: self.reset()
            elif first == 1: self.bold = True
            elif first in (38, 48):
                if numbers.pop(0) == 2: color = "#%02x%02x%02x" % tuple(numbers.pop(0) for _ in range(3))
                else: color = palette(numbers.pop(0))
                if first == 38: self.foreground = color
                else: self.background = color


def width_of(text):
    import unicodedata
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def svg(ansi, title):
    lines = ansi.rstrip("\n").split("\n")
    columns = max(width_of(ESCAPE.sub("", line)) for line in lines)
    width, height = columns * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html.escape(title)}">',
             f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
             '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">']
    ink = Ink()
    for number, line in enumerate(lines):
        at, y = 0, MARGIN + number * LINE
        for place, piece in enumerate(ESCAPE.split(line)):
            if place % 2:
                ink.apply(piece)
                continue
            if not piece: continue
            x, columns_of_piece = MARGIN + at * CELL, width_of(piece)
            if ink.background:
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{columns_of_piece * CELL + .3:.1f}" height="{LINE}" fill="{ink.background}"/>')
            if piece.strip():
                lead = len(piece) - len(piece.lstrip())
                words = piece.strip().replace(" ", "\u00a0")  # viewers collapse plain spaces
                bold = ' font-weight="bold"' if ink.bold else ""
                parts.append(f'<text x="{x + lead * CELL:.1f}" y="{y + 13}" fill="{ink.foreground}"{bold} textLength="{width_of(words) * CELL:.1f}">{html.escape(words)}</text>')
            at += columns_of_piece
    return "\n".join(parts + ["</g>", "</svg>", ""])


def settle(path, text, check):
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old == text: return 0
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"updated {path.relative_to(ROOT)}")
        return 0
    print(f"[{path.relative_to(ROOT)}] expected what the program prints; found something else; run scripts/update_docs.py")
    difference = difflib.unified_diff(old.splitlines(), text.splitlines(), "document", "program", lineterm="", n=1)
    print("\n".join(list(difference)[:20]))
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 at a difference")
    parser.add_argument("--program", default=ROOT / "build/bin/clearhead", type=Path)
    parser.add_argument("documents", nargs="*", type=Path, help="default: all of the three places")
    flags = parser.parse_args()
    wrong = 0
    every = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
    for document in [path.resolve() for path in flags.documents] or every:
        if not document.exists(): continue
        text = document.read_text(encoding="utf-8")
        fill = lambda m: f"{m[1]}```text\n{run(m['command'], flags.program).rstrip()}\n```\n{m[3]}"
        wrong += settle(document, RUN.sub(fill, text), flags.check)
        for place in PICTURE.finditer(text):
            ansi = run(place["command"], flags.program, CLICOLOR_FORCE="1", COLORTERM="truecolor")
            wrong += settle(ROOT / place["path"], svg(ansi, place["command"]), flags.check)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
