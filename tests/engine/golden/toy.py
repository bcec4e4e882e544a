#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes the toy from the words of clearhead/engine/toy.h alone; writes tests/engine/data/toy_golden.txt.

Only the standard library. One line per number: what, token, component, value.
"""
import math
import pathlib

MASK, SEED, D_MODEL = 2**64 - 1, 7, 512
WORDS = "The cat sat on the mat".split(" ")


def fnv(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def normal(name, index):
    word = lambda n: mix(mix(SEED + fnv(name) & MASK) + (n + 1) * 0x9E3779B97F4A7C15 & MASK)
    u, v = ((word(2 * index) >> 11) + 1) / 2**53, (word(2 * index + 1) >> 11) / 2**53
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def embedding(position, word, i):
    angle = position / 10000 ** ((i - i % 2) / D_MODEL)
    return normal("token_embedding", fnv(word) % 2**31 * D_MODEL + i) + (math.cos if i % 2 else math.sin)(angle)


def main():
    lines = []
    for position, word in enumerate(WORDS):
        x = [embedding(position, word, i) for i in range(D_MODEL)]
        lines += [f"embedding {position} {i} {x[i]:.9g}" for i in range(0, D_MODEL, 37)]
        for name in "query", "key", "value":
            for out in range(5, D_MODEL, 173):
                row = [normal(name, out * D_MODEL + i) / math.sqrt(D_MODEL) for i in range(D_MODEL)]
                lines.append(f"{name} {position} {out} {sum(a * b for a, b in zip(x, row)):.9g}")
    data = pathlib.Path(__file__).resolve().parent.parent / "data"
    data.mkdir(exist_ok=True)
    (data / "toy_golden.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
