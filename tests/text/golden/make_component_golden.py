#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Normalizers and pre-tokenizers one by one against the tokenizers library.

  make_component_golden.py [--check] [--encoder build/bin/encode_lines [--rounds 200] [--seed 1] [--map FILE]...]

Makes ../data/components_golden.json, or with --check compares with what is there: for each component a tokenizer.json and
texts with their tokens. A normalizer is followed by pieces of single bytes, which show its text and where it came from;
a pre-tokenizer by one piece for each word; where a space is put in front, by pairs of bytes and what trims their spans. With --encoder our program encodes these and random texts besides; the first
differences are shown. Made with tokenizers 0.23.3.

--map: the bytes of a precompiled_charsmap, as a SentencePiece model has it (normalizer_spec.precompiled_charsmap); with
the ones of nmt_nfkc and nmt_nfkc_cf, which the package sentencepiece writes and which are too large for this folder, the
random texts are of all the map's strings.
"""
import argparse
import base64
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, pre_tokenizers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
from make_break_tables import charsmap
from make_golden import DATA, ODDITIES, as_lines, encode, golden, keep, pack

BYTES = {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
         "vocab": [["<unk>", 0.0]] + [[f"<0x{byte:02X}>", -50.0] for byte in range(256)]}
WORDS = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
         "vocab": {"?": 0}}

# Longer and shorter than what they replace, nothing at all, whole clusters, controls, three letters for one.
MAP = {"\x01": "", "\u00ad": "", "\t": " ", "\r\n": "\n", "\u3000": " ", "\ufb01": "fi", "\u00bd": "1\u20442", "\u00c9": "e\u0301",
       "e\u0301": "\u00e9", "a\u0308": "\u00e4", "A": "a", "\u0301\u0316": "\u0316\u0301", "\u0308": "", "\uac00": "ga", "\u00a9": "(c)",
       "\u0915": "ka", "\U0001f1e9": "D", "\u337f": "\u682a\u5f0f\u4f1a\u793e", "\u1100": "g", "\u0600": "#"}
CHARACTERS = ("aAbeE \t\r\n\x01\u00ad\u0301\u0308\u0316\u0327\u3000\ufb01\u00bd\u00c9\uac00\u00a9\u0915\u094d\u0916\u200d\u200c\U0001f1e9\U0001f1ea\u337f\u1100\u1161"
              "\u11a8\u0600\U0001f468\u2764\ufe0f\u0903\u4f60\u3042\u30a2\u30fc\u0416\u03b1\u05d0\u0661\u0e01\u0378\U000e0100!,_1.")
TEXTS = ODDITIES[:96] + [
    "\x01a", "\x01\x01ab", "a\x01b\x01", "\u00bd\x01x", "\u00bd\x01\x01\x01x", "\x01\u00bd\x01", "\x01", "a\u0301\u0301", "e\u0301\u0301\u0301", "A\u0301", "A\u0301b\u0301",
    "\r\n\r\n\n\r", "\u00a9\u0301\u200d\u00a9\u0301", "\u0915\u094d\u0915\u0301", "\u1100\u1161\uac00\u0301", "\uac00\u0301x", "\u0600A\u0301", "\u0600\uac00\u0301", "\U0001f1e9\U0001f1ea\U0001f1e9",
    "  abc", "   ", "\u4e00\u3042\u30a2\u30fc\u4e00 \u4e00a", "a\u0378\u0416", "\u0301a", "1a 1.a", "\u3042a\u0301\u3042", "\u0e01\u0661\u05d0"]


def tokenizer_json(model, **components):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model} | components


def precompiled(data):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def spaced(regex, post_processor):
    """Pairs of bytes of which the space before a text may be part, and an added token that takes white space."""
    vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    # Spaces; a space and the first byte of e acute, of U+3000 and Chinese, of a letter; bytes within and across characters.
    merges = [["\u0120", "\u0120"], ["\u0120", "\u00c3"], ["\u0120", "\u00e3"], ["\u0120", "\u00e4"], ["\u0120", "a"],
              ["\u00c3", "\u00a9"], ["\u00bd", "\u0142"], ["\u00c2", "\u0142"], ["\u0122", "\u00a9"], ["\u0120\u0120", "\u0120"]]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    mask = {"id": len(vocabulary), "content": "[MASK]", "single_word": False, "lstrip": True, "rstrip": True,
            "normalized": False, "special": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": merges}
    cut = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": regex}
    return tokenizer_json(model, pre_tokenizer=cut, added_tokens=[mask], post_processor=post_processor)


SPACED_TEXTS = ["\u00a0a", "\u3000", "\u2028b", "\u00e9a", "\u4f60\u597d", "\u00e9", "  \u00e9", "   a", "\n\u00a0", "a\u00a0", "\U0001f600 \U0001f600",
                "[MASK]\u00e9", "\u3000[MASK]\t\u00e9", "a \t[MASK]\r\n[MASK]\u2028", "[MASK]a", " [MASK]  a"]


def components():
    """[(tokenizer.json, texts)]"""
    replace = {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"}
    normalizers = [precompiled(charsmap(MAP)), {"type": "ByteLevel"},
                   {"type": "Sequence", "normalizers": [precompiled(charsmap(MAP)), replace, {"type": "ByteLevel"}]}]
    cuts = [{"type": "Whitespace"}, {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 2}, {"type": "FixedLength"}]
    trims = {"trim_offsets": True, "add_prefix_space": True}
    ends = [spaced(True, {"type": "ByteLevel", "use_regex": True} | trims),
            spaced(False, {"type": "RobertaProcessing", "sep": ["!", 0], "cls": ["a", 64]} | trims)]
    return ([tokenizer_json(BYTES, normalizer=normalizer) for normalizer in normalizers]
            + [tokenizer_json(WORDS, pre_tokenizer=cut) for cut in cuts] + ends)


def keys_of(data):
    """The strings of a precompiled map."""
    count = struct.unpack_from("<I", data)[0] // 4
    units = struct.unpack_from(f"<{count}I", data, 4)

    def offset(unit):
        return unit >> 10 << ((unit & 1 << 9) >> 6)

    found, open_ = [], [(offset(units[0]), b"")]
    while open_:
        at, prefix = open_.pop()
        for byte in range(1, 256):
            if (at ^ byte) < count and units[at ^ byte] & 0x800000FF == byte:
                unit = units[at ^ byte]
                if unit >> 8 & 1:
                    found.append((prefix + bytes([byte])).decode())
                open_.append((at ^ byte ^ offset(unit), prefix + bytes([byte])))
    return sorted(found)


def random_texts(source, parts, count):
    return ["".join(source.choice(source.choice(parts)) for _ in range(source.randrange(14))) for _ in range(count)]


def differ(encoder, made, texts):
    """Texts that our program cuts otherwise; the first are shown."""
    theirs = as_lines(encode(Tokenizer.from_str(json.dumps(made)), texts)).split("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(made))
        run = subprocess.run([encoder, path], input=pack(texts), capture_output=True, check=True)
    ours = run.stdout.decode().split("\n")
    wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
    name = made["normalizer"] or made["pre_tokenizer"]
    print(f"{str(name)[:70]}: {len(texts)} texts, {len(wrong)} differ")
    for i in wrong[:3]:
        print(f"  text   {texts[i]!a}\n  ours   {ours[i]}\n  theirs {theirs[i]}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--encoder")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--map", action="append", default=[])
    arguments = parser.parse_args()
    rows, wrong = [], 0
    everything = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for made in components():
        theirs = Tokenizer.from_str(json.dumps(made))
        texts = [text for text in TEXTS + SPACED_TEXTS * (made["post_processor"] is not None) if theirs.encode(text).ids or not text.strip()]
        rows.append(f'[{json.dumps(made)},{golden(texts, encode(theirs, texts)).strip()}]')
        if arguments.encoder:
            source = random.Random(arguments.seed)
            wrong += differ(arguments.encoder, made, texts + random_texts(
                source, [CHARACTERS, CHARACTERS, everything], 100 * arguments.rounds) + everything)
    for path in arguments.map:
        data = pathlib.Path(path).read_bytes()
        source, keys = random.Random(arguments.seed), keys_of(data)
        wrong += differ(arguments.encoder, tokenizer_json(BYTES, normalizer=precompiled(data)), keys + random_texts(
            source, [keys, CHARACTERS, everything], 100 * arguments.rounds))
    wrong += not keep(DATA / "components_golden.json", "[\n" + ",\n".join(rows) + "\n]\n", arguments.check)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
