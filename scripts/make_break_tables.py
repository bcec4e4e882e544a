#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes clearhead/text/break_tables.cc: where user-perceived characters end, and the scripts of UnicodeScripts, both
from what the tokenizers library does to each code point (make_unicode_tables.py says why).

The library shows grapheme clusters nowhere, but its normalizer Precompiled goes through a text cluster by cluster: of
one that is shorter than 6 bytes and begins with a string of its map, all becomes what the map says. So "\\u0301" behind
a mapped character disappears where the two are a cluster by themselves, and stays where the cluster is longer.

  python3 scripts/make_break_tables.py            (needs the package tokenizers; made with 0.23.3; a minute)
"""
import struct

from tokenizers import normalizers, pre_tokenizers

from make_unicode_tables import CODE_POINTS, array, braces, ranges, write_tables

ACUTE, VIRAMA, JOINER = "\u0301", "\u094d", "\u200d"


def charsmap(pairs):
    """A precompiled map of {text: what it becomes}: a double array of the darts-clone kind, and the texts."""
    units, used, texts = {0: 0}, {0}, b""
    root = {}
    for key, value in pairs.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += value.encode() + b"\0"

    def place(at, node):
        base = next(base for base in range(1, 1 << 20)
                    if base ^ at < 1 << 21 and all(base ^ label not in used for label in node))
        used.update(base ^ label for label in node)
        units[at] |= (base ^ at) << 10 | (0 in node) << 8
        for label, child in node.items():
            units[base ^ label] = child | 1 << 31 if label == 0 else label
        for label, child in node.items():
            if label != 0:
                place(base ^ label, child)

    place(0, root)
    array_ = [units.get(at, 0) for at in range((max(units) | 255) + 1)]
    return struct.pack(f"<I{len(array_)}I", 4 * len(array_), *array_) + texts


def swallowed(before, mapped, code_points=CODE_POINTS, after=""):
    """The code points c for which before + c + after and mapped do not stand in one cluster."""
    normalizer = normalizers.Precompiled(charsmap({mapped: "."}))
    return {c for c in code_points if normalizer.normalize_str(before + chr(c) + after + mapped + ACUTE)[-1] == "."}


def probe_graphemes():
    """{class: code points} of Unicode Standard Annex 29; Hangul syllables are left out (arithmetic)."""
    every = set(CODE_POINTS)
    letter = normalizers.Precompiled(charsmap({"a": "."}))
    joins = {c for c in CODE_POINTS if letter.normalize_str("a" + chr(c)) == "."} - {ord(JOINER)}
    # A control ends the cluster, so that two marks behind it are one of their own.
    mark = normalizers.Precompiled(charsmap({ACUTE: "."}))
    control = {c for c in CODE_POINTS if mark.normalize_str(chr(c) + ACUTE + "\u0302")[-1] == "."}
    before_letter = every - swallowed("", "a")
    lead, vowel, trail = (every - swallowed("", jamo) - before_letter for jamo in ("\u1100", "\u1161", "\u11a8"))
    picture = every - swallowed("", "\u00a9", after=JOINER)
    extends = joins & (every - swallowed("\u00a9", "\u00a9", after=JOINER))
    consonant = every - swallowed("", "\u0915", after=VIRAMA)
    consonant -= before_letter
    linker = extends & (every - swallowed("\u0915", "\u0915"))
    links = extends & (every - swallowed("\u0915", "\u0915", after=VIRAMA))
    syllables = set(range(0xAC00, 0xD7A4))
    assert joins >= linker and control >= {0, 0xA, 0xD} and not control & joins
    assert syllables <= vowel | trail and lead == set(range(0x1100, 0x1160)) | set(range(0xA960, 0xA97D))
    assert trail - vowel - syllables == set(range(0x11A8, 0x1200)) | set(range(0xD7CB, 0xD7FC))
    vowels = (vowel & trail) - syllables
    assert vowels >= set(range(0x1160, 0x11A8)) | set(range(0xD7B0, 0xD7C7))
    return {"control": control, "extend": extends - links, "linked_extend": links - linker, "linker": linker,
            "joiner": {ord(JOINER)}, "spacing_mark": joins - extends, "prepend": before_letter, "pictograph": picture, "consonant": consonant,
            "lead": lead, "vowel": vowels, "trail": trail - vowel - syllables}


def probe_scripts():
    """[code points] of each script: two side by side are not cut. First those that are never cut off."""
    cut = pre_tokenizers.UnicodeScripts()
    parts = {c: len(cut.pre_tokenize_str(f"a{chr(c)}\u0416")) for c in CODE_POINTS}
    free = [c for c in CODE_POINTS if parts[c] == 2 and len(cut.pre_tokenize_str(f"a{chr(c)}a")) == 1
            and len(cut.pre_tokenize_str(chr(c))) == 0]
    scripts, last, own = [], None, None
    for c in CODE_POINTS:
        if not cut.pre_tokenize_str(chr(c)):
            continue
        if last is None or len(cut.pre_tokenize_str(last + chr(c))) == 2:
            own = next((s for s in scripts if len(cut.pre_tokenize_str(chr(s[0]) + chr(c))) == 1), None)
            if own is None:
                own = []
                scripts.append(own)
        own.append(c)
        last = chr(c)
    assert sum(map(len, scripts)) + len(free) == len(CODE_POINTS)
    return scripts


def main():
    graphemes = probe_graphemes()
    seen = set()
    for name, code_points in graphemes.items():
        assert not seen & code_points, (name, [hex(c) for c in seen & code_points][:9])
        seen |= code_points
        print(f"{name}: {len(code_points)}")
    table = sorted((*r, name) for name, code_points in graphemes.items() for r in ranges(code_points))
    entries = ["{" + f"{hex(first)},{hex(last)},Grapheme::{name}" + "}" for first, last, name in table]
    parts = [array(f"const GraphemeRange kGraphemeRanges[{len(entries)}]",
                   "how a code point stands in a grapheme cluster; syllables of Hangul and all others are not here", entries)]
    scripts = probe_scripts()
    table = sorted((*r, number) for number, code_points in enumerate(scripts, 1) for r in ranges(code_points))
    parts.append(array(f"const ScriptRange kScriptRanges[{len(table)}]",
                       "first, last, number of the script; what is not here goes with any", [braces(*r) for r in table]))
    write_tables("break", parts)
    print(f"{len(scripts)} scripts")


if __name__ == "__main__":
    main()
