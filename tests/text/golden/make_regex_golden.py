#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What regular expressions find in the tokenizers library, whose engine is Oniguruma.

  make_regex_golden.py [--check] [--encoder build/bin/encode_lines [--rounds 200] [--seed 1]]

Makes ../data/regex_golden.json, or with --check compares with what is there: rows of expression, text and the bytes of
each match that is not empty. With --encoder our program cuts random texts too, by these expressions and by Replace, and the
first differences are shown. Made with tokenizers 0.23.3.
"""
import argparse
import json
import random
import sys

from tokenizers import Regex, pre_tokenizers

from make_component_golden import BYTES, CHARACTERS, WORDS, differ, random_texts, tokenizer_json
from make_golden import DATA, keep

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

# Of models in use: GPT-4o and those who follow it, DeepSeek, Qwen 3.5, Falcon, Bloom, StarCoder, and cl100k as tiktoken writes it.
FAMILIES = [
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{LINES}",
    rf"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{{|}}~][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{LINES}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"\p{N}{1,3}",
    rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{LINES}",
    r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"[0-9][0-9][0-9]", r"[\p{P}\$\+<=>\^~\|`]+", r"\d{1,3}(?=(?:\d{3})*\b)", r"\p{Han}+|\p{Hangul}+|[^\p{Han}\p{Hangul}]+",
]

# The syntax, construct by construct.
SYNTAX = [
    ("a{,2}", "aaaa"), ("a{2}+", "aaaaaa"), ("(?:ab){1,2}?", "ababab"), ("a?+a", "aa"), ("a++a", "aaa"), ("a*+", "aa"), ("a**b", "aaab"),
    (r"\h+", "0aG "), (r"\H", "0aG "), (r"\R", "a\r\n\n\u2028\x0b"), ("^a", "b\na\n"), ("^", "a\n"), ("(?<=\n)^a?", "b\na\n"), ("a$", "a\nb a"), (r"\Aa", "a\na"),
    (r"a\Z", "a\na\n"), (r"a\z", "a\n"), (r"a\z", "aa"), (".", "a\n\r"), ("(?m).", "a\n"), ("(?m:.)a.", "\naa\n"), ("(?i)Ab", "aB AB ab"), ("(?i:k)", "K\u212ak"),
    ("(?i:[k-s])+", "K\u212a\u017fSz"), ("(?i:[^k])+", "K\u212a\u017fSz"), ("a(?i)b|c", "aB aC C"), ("(?i)a(?-i:B)", "AB Ab"), ("(?i-m:A)", "a"), ("[a&&b]", "ab"),
    ("[a-z&&[^b]]+", "abc"), (r"[^\p{L}&&a]+", "ab1"), (r"[\p{L}&&[^\p{Lu}]]+", "aB\u00e9"), ("[[a]b]+", "abc"), ("[]a]+", "]a["), ("[^]a]+", "]a["),
    ("[[:alpha:]]+", "a\u00e9\u0301 "), ("[[:^alpha:]]+", "a1"), ("[[:punct:]]+", "a!$+\u3001"), ("[[:space:][:digit:]]+", " 1\u0661a"), ("[[:word:]]+", "a\u00b2_"),
    (r"\p{Han}+", "\u4e00\u3005\u3042"), (r"\p{^Han}+", "\u4e00a"), (r"\P{Han}+", "\u4e00a"), (r"\P{^Han}+", "\u4e00a"), (r"\p{Uppercase_Letter}", "Aa"),
    (r"\p{ letter }", "Aa1"), (r"\p{Alpha}+", "A\u00e9\u0345"), (r"\p{Hiragana}+|\p{Katakana}+", "\u3042\u30fc\u30a2"), (r"\p{M}+", "a\u0301\u0488\u0903"),
    (r"\d+", "1\u0661\u00bd"), (r"\D+", "1a"), (r"\w+", "a\u0301_\u203f\u200d\u00b2\u00bd\u2160"), (r"[\w]+", "a\u00b2\u00bd"), (r"\W+", "a\u00b2 -"), (r"[^\w]+", "a\u00b2 -"),
    (r"\bab\b", "ab abc \u00e9ab ab"), (r"a\B", "ab a"), (r"\b", "ab"), (r"\s+", " \u0085\u180e\u200b\x1c\u2003"), (r"[^\S\n]+", " \n\t"), (r"\S+", "a\u0085b"),
    (r"\x41\x{4e00}\u4e00", "A\u4e00\u4e00"), (r"\e\a\t\n\r\f\v\0", "\x1b\x07\t\n\r\x0c\x0b\0"), (r"\-\/\#\~\!\'", "-/#~!'"), (r"\N+", "a\n"), (r"\O+", "a\n"),
    ("(?<=a)b", "ab b"), ("(?<!a)b", "ab b"), ("(?<=a|bc)d", "bcd ad d"), ("(?=a)a", "a"), ("(?!a).", "ab"), ("(?>a+)a", "aaa"), ("(?<n>a)b", "ab"), ("(?#c)a(?#)*", "aa"),
    (r"[\w-]+", "a-b"), (r"[a\-z]+", "a-z b"), (r"[\u4e00-\u9fff]+", "\u4e00a"), (r"[.\\^$*]+", "a.^"), ("[a-]+", "-a"), ("[-a]+", "-a"), ("[a-c-e]+", "a-e d"), ("[a&b]+", "a&b"),
    (r"[\b]", "\b"), ("a{x", "a{x"), ("a{", "a{"), ("a{,}", "a{,}"), ("}]", "}]"), ("", "ab"), ("()", "ab"), ("a*", "baab"), ("a|", "ba"), ("a|b|ab", "abab"), ("(a|ab)(c|bcd)", "abcd"),
    ("x*", "axb"), (r"(?:\s*\n)+", " \n \n a"), ("[\U0001f600-\U0001f64f]", "\U0001f600\U0001f650"), (r"\s+$", "a  \nb "), (r"^\s+|\s+$", "  a  "), (r"[^\x00-\x7f]+", "a\u00e9\u4e00"),
]

TEXTS = ["I'm 12345 don'T \u4f60\u597d\u4e16\u754c, it\u2019s  na\u00efve\n\n  Stop!! X\u00e9LL'll e\u0301\u0301 \u0661\u0662\u0663\u0664 $1,234.50 ", "  \u3042\u30a2\u4e00abc\r\n\t\u00bd\u00b2 (a|b)[c]/\n!?",
         "\u01c5\u02b0\u05d0A\u0301b\u0903 \u2160\u216b x\U0001f468\u200d\U0001f469 \ud55c\uad6d 's'S'\u017f", "a\u0085b\u180ec\u2028d   ", ""]


def matches(expression, text):
    cut = pre_tokenizers.Split(Regex(expression), "removed", invert=True).pre_tokenize_str(text)
    return [len(text[:place].encode()) for _, span in cut for place in span]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--encoder")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pairs = SYNTAX + [(expression, text) for expression in FAMILIES for text in TEXTS]
    rows = [json.dumps([expression, text, matches(expression, text)], separators=(",", ":")) for expression, text in pairs]
    wrong = 0
    if arguments.encoder:
        everything = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
        for expression in [*FAMILIES, *(expression for expression, _ in SYNTAX)]:
            source = random.Random(f"{arguments.seed} {expression}")
            texts = TEXTS + random_texts(source, [CHARACTERS + "'sdKk\n\n\t  {-&]/", "ab c'1A\n\r", everything], 10 * arguments.rounds)
            pattern = {"Regex": expression}
            behavior = source.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
            cut = {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": source.random() < 0.5}
            put = {"type": "Replace", "pattern": pattern, "content": source.choice(["", "x", "\u4e00y"])}
            wrong += differ(arguments.encoder, tokenizer_json(WORDS, pre_tokenizer=cut), texts)
            wrong += differ(arguments.encoder, tokenizer_json(BYTES, normalizer=put), texts)
    wrong += not keep(DATA / "regex_golden.json", "[\n" + ",\n".join(rows) + "\n]\n", arguments.check)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
