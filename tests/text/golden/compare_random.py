#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small tokenizers and random texts: our ids and offsets against those of the tokenizers library.

  compare_random.py --encoder build/bin/encode_lines [--rounds 200] [--seed 1]

Each round makes a tokenizer.json with random added tokens (all flags), normalizer options, vocabulary and template (every
third one of byte-level pairs, with all flags of its pre-tokenizer and post-processor), and encodes a few hundred texts of the characters that matter to them. The first differences are shown; exit code 1 if any.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, pre_tokenizers

from make_golden import as_lines, encode, pack

ALPHABET = ["a", "b", "A", "B", "e\u0301", "\u00e9", "\u00c9", "\u0301", "\u0316", "\u302e", "\U0001d15e", "\U0001d165", "\u4f60", "\ud55c", "\uf900",
            " ", " ", "  ", "\t", "\n", "\u2003", "\u3000", "\u0085", "\0", "\u200d", "\ufffd", "!", ",", "#", "[", "]", "_", "\u0130", "\u03a3", "\u1e9e", "x", "7"]


def character(source):
    if source.random() < 0.95:
        return source.choice(ALPHABET)
    anywhere = source.randrange(0x110000)
    return "" if 0xD800 <= anywhere < 0xE000 else chr(anywhere)


def text(source, most):
    return "".join(character(source) for _ in range(source.randrange(most)))


def flip(source):
    return source.random() < 0.5


def random_added(source, vocabulary, contents):
    added, seen = [], set()
    for content in contents:
        # Not tokens that are nothing or white space when normalized: with them the library panics or takes all memory.
        if not any(c.isascii() and c.isalnum() for c in content) or content in seen:
            continue
        seen.add(content)
        known = vocabulary.get(content)
        fresh = len(vocabulary) + sum(token["content"] not in vocabulary for token in added)
        added.append({"id": fresh if known is None else known, "content": content, "single_word": source.random() < 0.3,
                      "lstrip": source.random() < 0.3, "rstrip": source.random() < 0.3, "normalized": flip(source),
                      "special": flip(source)})
    return added


def random_contents(source):
    return [source.choice([text(source, 5), "ab", "a", "[X]", " a", "b ", "\u00c9"]) for _ in range(source.randrange(7))]


def random_byte_level(source):
    """Bytes, and merges of them that random texts really have."""
    writer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    for _ in range(source.randrange(120)):
        written = writer.pre_tokenize_str(" " + text(source, 4))[0][0]
        at = source.randrange(len(written))
        left, right = written[at:at + source.randrange(1, 3)], written[at + 1:at + 1 + source.randrange(1, 3)]
        if left in vocabulary and right in vocabulary and left + right not in vocabulary:
            vocabulary[left + right] = len(vocabulary)
            merges.append([left, right])
    for content in ("<s>", "</s>"):
        vocabulary[content] = len(vocabulary)
    prefix, trims, spaced = flip(source), flip(source), flip(source)
    cut = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": flip(source), "use_regex": flip(source)}
    digits = {"type": "Digits", "individual_digits": flip(source)}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", vocabulary["</s>"]], "cls": ["<s>", vocabulary["<s>"]],
               "trim_offsets": trims, "add_prefix_space": spaced}
    byte_level = {"type": "ByteLevel", "add_prefix_space": spaced, "trim_offsets": trims, "use_regex": flip(source)}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": random_added(source, vocabulary, ["<s>"] + random_contents(source)),
            "normalizer": source.choice([None, None, {"type": "NFC"}, {"type": "Lowercase"}]),
            "pre_tokenizer": source.choice([cut, cut, {"type": "Sequence", "pretokenizers": [digits, cut]}]),
            "post_processor": source.choice([roberta, byte_level]), "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": flip(source),
                      "vocab": vocabulary, "merges": merges}}


def random_tokenizer(source):
    """One that the library and we both accept."""
    pieces = {"[UNK]", "[CLS]", "[SEP]"}
    prefix = source.choice(["##", "##", "@", ""])
    for _ in range(source.randrange(5, 60)):
        piece = text(source, 4).strip()
        if piece:
            pieces.add(source.choice(["", prefix]) + piece)
    vocabulary = {piece: i for i, piece in enumerate(sorted(pieces))}
    added = random_added(source, vocabulary, ["[CLS]"] + random_contents(source))
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
            made = random_byte_level(source) if number % 3 == 2 else random_tokenizer(source)
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
