#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, and checks, what the tests of the cuts of a GGUF compare with: llama.cpp's ids for every name of
tokenizer.ggml.pre that is known here.

  make_cuts_golden.py [--encoder build/bin/encode_lines] [--check]

Writes ../data/cuts_golden.json, or with --check compares with what is there: a vocabulary of all bytes and of many pairs
of them, so that nearly every cut shows in the ids; hard texts; for each kind of name the names and a hash of the ids of
each text; and for each name the ids of "a" where the file does not say whether texts begin with a token. With --encoder, our program encodes the same texts with the same files and must give the same ids. Made
with llama-cpp-python 0.3.36 and gguf 0.19.0.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import gguf
import llama_cpp

from make_golden import ODDITIES, keep, pack

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "data" / "cuts_golden.json"
SOURCE = pathlib.Path(__file__).resolve().parents[3] / "clearhead" / "text" / "gguf_cut.cc"
SEED = 20261130
MOST_PAIRS = 1800

# Pieces that no merge leads to: only where a whole word needs no merges are they found.
WHOLE = ["hello", "\u0120hello", "word", "Word", "\u0120\u0120", "123", "\u010a\u010a", "..."]
MASK = "<mask>"
NORMAL, CONTROL = 1, 3

PARTS = [
    # numbers, contractions, words with capitals in all places
    "1", "12", "123", "1234", "12345678901", "\u0663\u0664\u0665\u0666", "\u00bd", "\u00b2\u00b3", "\u2167", "\uff11\uff12\uff13\uff14", "\U0001d7ce\U0001d7cf", "3.14", "1,000,000",
    "don't", "DON'T", "we'Ve", "I'LL", "he'd", "'S", "'\u017f", "'re", "x'l", "'", "''s", "it\u2019s", "they'RE", "'t9", "o'clock",
    "word", "Word", "WORD", "wORD", "HTMLParser", "\u00c9cole", "\u00c0\u00c9\u00ce", "na\u00efve", "\u0410\u0411\u0412\u0433\u0434", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u01c5", "\u02b0\u02b1", "\u00aa\u00ba", "stra\u00dfe", "a", "I",
    # spaces and line ends
    " ", "  ", "   ", "     ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", " \t ", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\u1680", "\v\f", "\r", "\x1c",
    # scripts without spaces, with marks, of several blocks
    "\u4f60\u597d", "\u4e16\u754c\u3002", "\u65e5\u672c\u8a9e", "\u304b\u306a", "\u30ab\u30ca", "\uff76\uff85", "\ud55c\uad6d\uc5b4", "\u1112\u1161", "\u0e44\u0e17\u0e22", "\u0e01\u0e33", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u09ac\u09be\u0982\u09b2\u09be", "\u0c24\u0c46",
    "e\u0301", "\u0301", "a\u0300\u0316b", "\u0628\u064e\u062a", "\u05d0\u05b8", "\U00020000\u3400", "\uf900", "\U0002f800", "\u3105\u3106", "\u3131", "\u9fa6", "\u1000\u103c",
    # punctuation, symbols, pictures
    ".", ",", "!?", "...", "--", "(a)", "[b]", "{c}", "#tag", "@me", "/path/to", "\\n", "a_b", "x=y", "$5", "+1", "^", "~~", "|", "<p>", "`q`", "\u20ac9", "\u00a3", "\u2192", "\u00b1", "\u2026", "\u3001", "\u3002", "\uff0c", "\uff01", "\u300a\u66f8\u300b", "\u201cq\u201d", "\u2014", "\u0964", "\u06d4", "\u060c", "\u00ab\u00bb", "\u00bf",
    "\U0001f600", "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "\U0001f3fd",
    # controls, private use, what is unassigned, noncharacters, what Unicode 15.1 and 16 brought
    "\x01", "\x07", "\x7f", "\u00ad", "\u200d", "\ufeff", "\ue000", "\U000f0000", "\u0378", "\u2fe0", "\U0001fb95x", "\ufffe", "\U0010ffff", "\ufffd", "\U0002ebf0\U0002ebf1", "\u2ffc", "\u1c89\u1c8a", "\ua7cb",
    "\U00010d40\U00010d41", "\U000105c0", "\U00016d40", "\U0001ccd6", "\u0897", "\U00011bc0",
    # whole words of the vocabulary, an added token with spaces before it, long numbers
    "hello", " hello", "Hello", "\u4f60\u597d hello\n", "a  <mask> b", "a\t<mask>", "\u00a0<mask><mask>", "12345678", "x123456", "\u06631234567\u0664", "1234567 12",
    # what some of the expressions name
    "IMGIMGABCZ", "IMGIMGZ", "<sentinel:12>", "<sentinel:>", "http://a.b/c?d=e&f", "a b c", "\u0440\u0430\u0437 \u0434\u0432\u0430", "if (x) {\n\treturn y;\n}", "    def f():\n        pass\n",
]


def names():
    """Lists of names of one kind, as the source has them."""
    return re.findall(r'\.names =\s*"([^"]*)"', re.sub(r'"\s*\n\s*"', "", SOURCE.read_text()))


def texts():
    source = random.Random(SEED)
    result = [text for text in ODDITIES if len(text) < 60]
    result += PARTS
    for _ in range(160):
        result.append("".join(source.choice(PARTS) for _ in range(source.randrange(2, 9))))
    return list(dict.fromkeys(result))


def written():
    """The character that each byte is written as."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in kept else chr(next(others)) for byte in range(256)]


def kind(byte):
    if byte >= 0x80:
        return "beyond"
    return "letter" if chr(byte).isalpha() else "digit" if chr(byte).isdigit() else "space" if chr(byte).isspace() else chr(byte)


def vocabulary(all_texts):
    """(tokens, merges): bytes and pairs of neighbours, those of two kinds first, so that they merge unless a cut stands
    between; then the most frequent."""
    pairs = collections.Counter()
    for text in all_texts:
        data = text.encode()
        pairs.update(zip(data, data[1:]))
    order = sorted(pairs, key=lambda pair: (kind(pair[0]) == kind(pair[1]), -pairs[pair], pair))[:MOST_PAIRS]
    letters = written()
    found = [letters[a] + letters[b] for a, b in order]
    whole = [piece for piece in WHOLE if piece not in found]
    return letters + found + whole + [MASK], [f"{letters[a]} {letters[b]}" for a, b in order]


@contextlib.contextmanager
def gguf_file(path, model):
    """A writer of a file without tensors, with what llama.cpp asks for before it reads a tokenizer of the model."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    for key in ("embedding_length", "feed_forward_length", "block_count"):
        getattr(writer, f"add_{key}")(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(model)
    yield writer
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def write_gguf(path, name, tokens, merges, begins):
    with gguf_file(path, "gpt2") as writer:
        writer.add_tokenizer_pre(name)
        writer.add_token_list(tokens)
        writer.add_token_types([CONTROL if token == MASK else NORMAL for token in tokens])
        writer.add_token_merges(merges)
        if begins is not None:
            writer.add_add_bos_token(begins)


def hash_of(ids):
    """FNV-1a of 32 bits over the ids, each as two bytes, the lower first."""
    value = 0x811C9DC5
    for i in ids:
        for byte in (i & 0xFF, i >> 8):
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


def compare(encoder, path, name, all_texts, theirs):
    run = subprocess.run([encoder, path], input=pack(all_texts), capture_output=True, check=False)
    if run.returncode != 0:
        print(f"{name}: {run.stderr.decode().strip()}")
        return False
    ours = [[int(token.split(",")[0]) for token in line.split()] for line in run.stdout.decode().split("\n")]
    wrong = [i for i in range(len(all_texts)) if ours[i] != theirs[i]]
    if wrong:
        print(f"{name}: {len(wrong)} of {len(all_texts)} texts differ")
        for i in wrong[:3]:
            print(f"  text   {all_texts[i]!a}\n  ours   {ours[i]}\n  theirs {theirs[i]}")
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    all_texts = texts()
    tokens, merges = vocabulary(all_texts)
    good, hashes, begins = True, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "cut.gguf")
        for kinds in names():
            for name in kinds.split():
                write_gguf(path, name, tokens, merges, None)
                model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
                begins[name] = model.tokenize(b"a", add_bos=True, special=True)
                model.close()
                if arguments.encoder:
                    good &= compare(arguments.encoder, path, name, ["a"], [begins[name]])
                write_gguf(path, name, tokens, merges, False)
                model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
                theirs = [model.tokenize(text.encode(), add_bos=False, special=True) if text else [] for text in all_texts]
                model.close()
                if arguments.encoder:
                    good &= compare(arguments.encoder, path, name, all_texts, theirs)
                own = "".join(map(hash_of, theirs))
                if hashes.setdefault(kinds, own) != own:
                    print(f"{name}: other ids than the names beside it")
                    good = False
    print(f"{sum(len(kinds.split()) for kinds in hashes)} names of {len(hashes)} kinds, {len(all_texts)} texts")
    content = json.dumps({"pairs": merges, "whole": tokens[256 + len(merges) : -1], "texts": all_texts, "hashes": hashes,
                          "begins": begins}, ensure_ascii=True, indent=0) + "\n"
    good &= keep(GOLDEN, content, arguments.check)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
