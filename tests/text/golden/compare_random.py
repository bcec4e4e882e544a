#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small tokenizers and random texts: our ids and offsets against those of the tokenizers library.

  compare_random.py --encoder build/bin/encode_lines [--rounds 200] [--seed 1]

Each round makes a tokenizer.json with random added tokens (all flags), normalizer options, vocabulary and template, and
encodes a few hundred texts of the characters that matter to them. The first differences are shown; exit code 1 if any.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

from make_golden import as_lines, encode, pack

ALPHABET = ["a", "b", "A", "B", "e\u0301", "\u00e9", "\u00c9", "\u0301", "\u0316", "\u302e", "\U0001d15e", "\U0001d165", "\u4f60", "\ud55c", "\uf900",
            " ", " ", "  ", "\t", "\n", "\u2003", "\u3000", "\u0085", "\0", "\u200d", "\ufffd", "!", ",", "#", "[", "]", "_", "\u0130", "\u03a3", "\u1e9e", "x", "7"]


def text(source, most):
    return "".join(source.choice(ALPHABET) for _ in range(source.randrange(most)))


def flip(source):
    return source.random() < 0.5


def random_tokenizer(source):
    """One that the library and we both accept."""
    pieces = {"[UNK]", "[CLS]", "[SEP]"}
    prefix = source.choice(["##", "##", "@", ""])
    for _ in range(source.randrange(5, 60)):
        piece = text(source, 4).strip()
        if piece:
            pieces.add(source.choice(["", prefix]) + piece)
    vocabulary = {piece: i for i, piece in enumerate(sorted(pieces))}
    added, seen = [], set()
    for content in ["[CLS]"] + [source.choice([text(source, 5), "ab", "a", "[X]", " a", "b ", "\u00c9"]) for _ in range(source.randrange(7))]:
        # Not tokens that are nothing or white space when normalized: with them the library panics or takes all memory.
        if not any(c.isascii() and c.isalnum() for c in content) or content in seen:
            continue
        seen.add(content)
        known = vocabulary.get(content)
        fresh = len(vocabulary) + sum(token["content"] not in vocabulary for token in added)
        added.append({"id": fresh if known is None else known, "content": content, "single_word": source.random() < 0.3,
                      "lstrip": source.random() < 0.3, "rstrip": source.random() < 0.3, "normalized": flip(source),
                      "special": flip(source)})
    normalizer = {"type": "BertNormalizer", "clean_text": flip(source), "handle_chinese_chars": flip(source),
                  "strip_accents": source.choice([None, True, True, False]), "lowercase": flip(source)}
    special = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 1}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": single, "special_tokens": special,
                "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}]}
    bert = {"type": "BertProcessing", "sep": ["[SEP]", vocabulary["[SEP]"]], "cls": ["[CLS]", vocabulary["[CLS]"]]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": source.choice([normalizer, normalizer, None]),
            "pre_tokenizer": source.choice([{"type": "BertPreTokenizer"}] * 3 + [None]),
            "post_processor": source.choice([template, bert, None]), "decoder": None,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
                      "max_input_chars_per_word": source.choice([3, 10, 100]), "vocab": vocabulary}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    total = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        for number in range(arguments.rounds):
            source = random.Random(f"{arguments.seed} {number}")
            made = random_tokenizer(source)
            path.write_text(json.dumps(made))
            words = [token["content"] for token in made["added_tokens"]]
            texts = ["".join(source.choice([text(source, 8), source.choice(words)]) for _ in range(source.randrange(8))) for _ in range(300)]
            theirs = as_lines(encode(Tokenizer.from_str(json.dumps(made)), texts)).split("\n")
            run = subprocess.run([arguments.encoder, path], input=pack(texts), capture_output=True)
            if run.returncode != 0:
                print(f"round {number}: {run.stderr.decode()}")
                wrong += 1
                continue
            for own, mine, other in zip(texts, run.stdout.decode().split("\n"), theirs):
                total += 1
                if mine != other:
                    wrong += 1
                    if wrong < 4:
                        print(f"round {number}: {json.dumps(made)}\n  text   {own!a}\n  ours   {mine}\n  theirs {other}")
    print(f"{total} texts with {arguments.rounds} tokenizers, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
