# SPDX-License-Identifier: Apache-2.0
"""10 MB of mixed text, and the digests of its tokens, as ../mixed_text.h makes them too.

Lines of whole texts of ../data/bert_golden.json, of pieces of them with and without marks strewn in, of characters of one
page of Unicode, and of characters from anywhere.
"""
import json

WORD = (1 << 64) - 1
MIXED_BYTES = 10_000_000
BLOCK = 1000  # texts of a digest
# First and last: marks of Latin, Hebrew, Arabic, Devanagari, Thai, Hangul and notes, joiners and direction marks, variation
# selectors.
MARKS = [(0x300, 0x36F), (0x591, 0x5BD), (0x64B, 0x655), (0x93C, 0x94D), (0xE31, 0xE3A), (0x302A, 0x302F),
         (0x1D165, 0x1D169), (0x200B, 0x200F), (0xFE00, 0xFE0F)]


class Dice:
    """splitmix64 (Steele et al. 2014, Fast Splittable Pseudorandom Number Generators)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, count):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        value = self.state
        value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & WORD
        value = ((value ^ value >> 27) * 0x94D049BB133111EB) & WORD
        return (value ^ value >> 31) % count


def valid(c):
    return chr(0xFFFD if 0xD800 <= c < 0xE000 else c)


def part(dice, sources):
    kind = dice.below(100)
    if kind < 55:
        return sources[dice.below(len(sources))]
    if kind < 85:
        source = sources[dice.below(len(sources))]
        begin = dice.below(len(source) + 1)
        piece = source[begin:begin + 1 + dice.below(20)]
        if kind < 75:
            return piece
        marked = ""
        for c in piece:
            marked += c
            if dice.below(5) < 2:
                first, last = MARKS[dice.below(len(MARKS))]
                marked += chr(first + dice.below(last - first + 1))
        return marked
    page = dice.below(0x1100) if kind < 95 else None
    text = ""
    for _ in range(1 + dice.below(29)):
        text += valid(dice.below(0x110000) if page is None else page * 256 + dice.below(256))
        if dice.below(10) < 3:
            text += " "
    return text


def mixed_texts(golden):
    """golden: the path of bert_golden.json."""
    sources = [row[0] for row in json.loads(golden.read_text("utf-8"))]
    dice, texts, size = Dice(20240230), [], 0
    while size < MIXED_BYTES:
        between = ["", " ", "\n"][dice.below(3)]
        parts = 1 + dice.below(11)
        texts.append(between.join([part(dice, sources) for _ in range(parts)]))
        size += len(texts[-1].encode())
    return texts


def digests(rows):
    """Of each thousand rows of numbers, FNV-1a of 64 bits over the numbers, each as one step, and a row's end as another."""
    result = []
    for at in range(0, len(rows), BLOCK):
        value = 0xCBF29CE484222325
        for row in rows[at:at + BLOCK]:
            for number in row:
                value = ((value ^ number) * 0x100000001B3) & WORD
            value = ((value ^ WORD) * 0x100000001B3) & WORD
        result.append(f"{value:016x}")
    return result


def mixed_json(texts, rows, tokens):
    """rows: of each text ids, or ids and offsets. The texts' own digests are of their bytes."""
    content = {"texts": len(texts), "tokens": tokens, "text_digests": digests([text.encode() for text in texts]),
               "token_digests": digests(rows)}
    return json.dumps(content, indent=1) + "\n"
