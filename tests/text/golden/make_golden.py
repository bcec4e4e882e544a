#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, and checks, what the tests of the tokenizer compare with: ids and offsets of the tokenizers library.

  make_golden.py --name bert --tokenizer minilm/tokenizer.json --packages FOLDER [--encoder build/bin/encode_lines]
                 [--check]

Names and their models: bert minilm, unigram multilingual-e5-small.

FOLDER holds, unpacked (dpkg -x), the Debian 12 packages fortunes, fortunes-min, fortunes-zh, fortunes-ru, fortunes-es,
fortunes-de and unicode-data (for Blocks.txt). Made with tokenizers 0.23.3.

Two things are made in ../data/, or with --check compared with what is there:
  NAME_golden.json   a few hundred texts of all scripts and oddities with their tokens
  NAME_mixed.json    digests of the tokens of 10 MB of mixed text (mixed_text.py, which reads bert_golden.json)
With --encoder, our program encodes both sets and must give the same tokens; the first difference is shown.
"""
import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import unicodedata

from tokenizers import Tokenizer

from mixed_text import mixed_json, mixed_texts

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
SEED = 20240229
LONGEST_SENTENCE = 90

ODDITIES = [
    "", " ", "a", " a", "a ", "  \n\n x", "\t\r\n", "The cat sat on the mat.", "Hello, World!", "HELLO wORLD",
    "don\u2019t vs don't", "\u0663\u0664 \u00bd \u2167", "na\u00efve caf\u00e9 \u00c5ngstr\u00f6m", "nai\u0308ve",
    "\ud55c", "\ud55c\uad6d\uc5b4 \ud1a0\ud070", "\u1112\u1161\u11ab", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u6211love\u4f60",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "\uf900\uf901 \U0002f800\U0002fa1d", "\U00020000\U0002a6d6\U0002b81d\U0002b820\U0002b91f\U0002b920",
    "a\0b", "a\x0bb", "a\x0cb", "a\u0085b", "a\u200bb", "a\u00adb", "a\u180eb", "a\u2028b\u2029c", "a\ufeffb", "a\ufffdb",
    "a\u3000b\u00a0c\u1680d", "\x1c\x1d\x1e\x1f", "\x7f", "a\x7fb", "\ue000\uf8ff\U000f0000", "\U0010ffff", "\ufffe",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f600\U0001f3fd", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea",
    "\u0130stanbul", "I\u0307", "\u03a3\u0399\u03a3\u03a5\u03a6\u039f\u03a3", "\u1e9e\u00df", "\ufb01\ufb02\ufb03", "\u212b\u2126\u212a", "\u01c4\u01c5\u01c6",
    "\u1f88\u1fbc\u1ffc", "Vie\u0323\u0302t Nam Vi\u1ec7t", "e\u0301\u0301\u0301", "\u0301", "\u0301a", "a\u0300\u0316\u0315", "a\u0315\u0300",
    "\u0344x", "q\u0307\u0323 q\u0323\u0307", "\U0001d15e\U0001d15f\U0001d160", "\U0001d15e\u0316", "\U0001d157\u0316\U0001d165\u0301", "\U0001d1bb\u0334\u0301x",
    "\u302e\u302f\u302a", "x\u302e\u0334y", "\u0e01\u0e33\u0e49\u0e32", "\u0f71\u0f72\u0f74", "\u0f73\u0f75\u0f81", "\u0915\u094d\u0937", "\u0929\u0931\u0934", "\u0b94\u0bca",
    "\U0001193a\U00011938", "\U00011935\U00011930", "\u2e43 \u2e42", "\u166d\U000111c9", "\u0964\u0965", "$+<=>^`|~", "!\"#%&'()*,-./:;?@[\\]_{}", "\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf",
    "a-b_c.d/e", "...---...", "http://example.com/?q=a+b&c=%20#x", "C++ is > C", "1,234.56", "3.14159265358979323846", "x\u00b2+y\u00b2=z\u00b2",
    "a" * 99, "a" * 100, "a" * 101, "\u00e9" * 100, "\u00e9" * 101, "e\u0301" * 100, "\ud55c" * 33, "\ud55c" * 34, "\u0430" * 101, "\u4e2d" * 101, "!" * 101,
    "x" * 60 + "qzj" * 20, "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaft", "supercalifragilisticexpialidocious",
    "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[cls]", "[MASK", "MASK]", "[[MASK]]", "a[MASK]b", "Hi [MASK] there", " [MASK] ", "[MASK][MASK]",
    "Paris is the [MASK] of France.", "[CLS] hello [SEP] world [SEP]", "[M\u0301ASK]", "\u0301[MASK]\u0301", "[UNUSED0] [unused0]", "[ MASK ]",
    "<mask> <s> </s> <|im_start|>user", "</script><img onerror=alert(1)>", "&lt;b&gt; \"quoted\" \\n \\u0041", "##ing", "# #ing", "a##b", "play playing played ##ed",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u0627\u0644\u0633\u0651\u064e\u0644\u064e\u0627\u0645\u064f", "\u06c0\u0626\u0622", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u1019\u103c\u1014\u103a\u1019\u102c", "\u10d0\u10d1\u1c90\u1c91", "\u13a0\uab70", "\uab70\u13f8",
    "\u0410\u0411\u0412 \u0439\u0419\u0451\u0401", "\u0460\u0461\ua640", "\u2c00\u2c30", "\U00010400\U00010428", "\U0001e900\U0001e922", "\U00016e40\U00016e60", "\ua7c9\ua7ca\ua7f5",
    "\uff21\uff22\uff11\uff01\uff0c", "\uff76\uff9e\uff77\uff9f", "\u30ab\u3099\u30ac", "\u3250\u3300\u32ff", "\u337b\u33ff", "\u2460\u24b6\u24d0", "\u2f00\u2fd5", "\u3007\u3021\u3038",
]


def sentences(folder):
    """Short sentences of the fortune files, sorted, each once."""
    found = set()
    for path in sorted(pathlib.Path(folder).glob("usr/share/games/**/*")):
        if not path.is_file() or path.is_symlink() or path.suffix == ".dat":
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        for fortune in re.split(r"\n%\n", re.sub("\x1b\\[[0-9;]*m", "", text)):
            for line in re.split(r"\n{2,}|(?<=[.!?\u3002\uff01\uff1f])\s+", fortune):
                if 2 <= len(line) <= LONGEST_SENTENCE:
                    found.add(line)
    return sorted(found)


def blocks(folder):
    """[(name, code points)] of every Unicode block; surrogates cannot be in a text."""
    result = []
    for line in (pathlib.Path(folder) / "usr/share/unicode/Blocks.txt").read_text().splitlines():
        match = re.fullmatch(r"([0-9A-F]+)\.\.([0-9A-F]+); (.*)", line)
        if match and "Surrogate" not in match[3]:
            result.append((match[3], range(int(match[1], 16), int(match[2], 16) + 1)))
    return result


def block_text(code_points, source, count):
    """Random code points of a block, some with spaces between; assigned ones only, if there are any."""
    assigned = [c for c in code_points if unicodedata.category(chr(c)) != "Cn"] if len(code_points) < 5000 else []
    chosen = [source.choice(assigned or code_points) for _ in range(count)]
    return "".join(chr(c) + (" " if source.random() < 0.3 else "") for c in chosen)


def golden_texts(folder):
    source = random.Random(SEED)
    lines = sentences(folder)
    by_script = {"han": [], "cyrillic": [], "other": [], "ascii": []}
    for line in lines:
        if re.search("[\u4e00-\u9fff]", line):
            by_script["han"].append(line)
        elif re.search("[\u0400-\u04ff]", line):
            by_script["cyrillic"].append(line)
        else:
            by_script["ascii" if line.isascii() else "other"].append(line)
    texts = list(ODDITIES)
    for script, count in (("ascii", 60), ("han", 50), ("cyrillic", 25), ("other", 45)):
        texts += source.sample([line for line in by_script[script] if len(line) <= 60], count)
    return texts + [block_text(code_points, source, 9) for _, code_points in blocks(folder)]


def encode(tokenizer, texts):
    """[[(id, begin, end)]], offsets in bytes."""
    result = []
    for at in range(0, len(texts), 1000):
        batch = texts[at : at + 1000]
        for text, encoding in zip(batch, tokenizer.encode_batch(batch)):
            place = [0]
            for c in text:
                place.append(place[-1] + len(c.encode()))
            result.append([(i, place[b], place[e]) for i, (b, e) in zip(encoding.ids, encoding.offsets)])
    return result


def as_lines(encodings):
    return "".join(" ".join(f"{i},{b},{e}" for i, b, e in tokens) + "\n" for tokens in encodings)


def pack(texts):
    """What encode_lines reads."""
    return b"".join(struct.pack("<I", len(data)) + data for data in (text.encode() for text in texts))


def compare(encoder, tokenizer_json, texts, encodings):
    """Runs our program on the texts; True if it gives the same tokens."""
    run = subprocess.run([encoder, tokenizer_json], input=pack(texts), capture_output=True, check=True)
    ours, theirs = run.stdout.decode().split("\n"), as_lines(encodings).split("\n")
    wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
    print(f"{len(texts)} texts, {sum(map(len, encodings))} tokens: {len(wrong)} differ; ours, {run.stderr.decode().strip()}")
    for i in wrong[:3]:
        print(f"  text   {texts[i]!a}\n  ours   {ours[i]}\n  theirs {theirs[i]}")
    return not wrong


def golden(texts, encodings):
    """Offsets as the gap since the last token's end and the length, which are short numbers; special tokens, which have
    (0, 0), as gap 0 and length 0."""
    rows = []
    for text, tokens in zip(texts, encodings):
        spans, last = [], 0
        for _, begin, end in tokens:
            if (begin, end) == (0, 0):
                spans += [0, 0]
            else:
                spans += [begin - last, end - begin]
                last = end
        rows.append([text, [i for i, _, _ in tokens], spans])
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "\n]\n"


def keep(path, content, check):
    """Writes the file, or with check compares it with what is there. Returns whether it is the same now."""
    if not check:
        path.write_bytes(content.encode())
        print(f"{path.name}: {len(content.encode())} bytes")
        return True
    same = path.read_bytes() == content.encode()
    print(f"{path.name}: {'the same' if same else 'DIFFERENT'}")
    return same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--encoder")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(arguments.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    good = True
    results = {}
    for name, texts in (("golden", golden_texts(arguments.packages)), ("mixed", mixed_texts(DATA / "bert_golden.json"))):
        encodings = encode(tokenizer, texts)
        print(f"{name}: {sum(len(text.encode()) for text in texts)} bytes")
        if arguments.encoder:
            good &= compare(arguments.encoder, arguments.tokenizer, texts, encodings)
        results[name] = (texts, encodings)

    texts, encodings = results["mixed"]
    rows = [[number for token in tokens for number in token] for tokens in encodings]
    files = {f"{arguments.name}_golden.json": golden(*results["golden"]),
             f"{arguments.name}_mixed.json": mixed_json(texts, rows, sum(map(len, encodings)))}
    for name, content in files.items():
        good &= keep(DATA / name, content, arguments.check)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
