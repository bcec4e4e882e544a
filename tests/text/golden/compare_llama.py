#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our ids with those of llama.cpp for the tokenizer of a GGUF, on the texts of make_golden.py.

  compare_llama.py --model MODEL.gguf --packages FOLDER --encoder build/bin/encode_lines [--mixed BYTES]

Compared with llama-cpp-python 0.3.36. Texts with code points that Unicode 16 knows and llama.cpp's tables do not, or the
other way round, are counted apart: our tables are those of the tokenizers library. So are texts with a character whose
byte has no piece: both leave it out, but for llama.cpp what stands on its two sides is never merged, and for us, as for the
tokenizers library, it may be.
"""
import argparse
import subprocess
import sys
import unicodedata

import llama_cpp

from make_golden import golden_texts, mixed_texts, pack


def of_one_vintage(text):
    """Assigned in the Unicode of this Python, so in all tables that are compared, and no noncharacter or private use."""
    return all(unicodedata.category(c) not in ("Cn", "Co") for c in text)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--model", "--packages", "--encoder"):
        parser.add_argument(name, required=True)
    parser.add_argument("--mixed", type=int, default=0)
    arguments = parser.parse_args()
    texts, size = golden_texts(arguments.packages), 0
    for text in mixed_texts(arguments.packages) if arguments.mixed else []:
        size += len(text.encode())
        if size > arguments.mixed:
            break
        texts.append(text)
    run = subprocess.run([arguments.encoder, arguments.model], input=pack(texts), capture_output=True, check=True)
    ours = [[int(token.split(",")[0]) for token in line.split()] for line in run.stdout.decode().split("\n")]
    model = llama_cpp.Llama(arguments.model, vocab_only=True, verbose=False)
    left_out = [chr(c) for c in range(0x80) if not model.tokenize(bytes([c]), add_bos=False, special=False)]
    wrong, vintage, gaps, tokens = [], 0, 0, 0
    for text, own in zip(texts, ours):
        theirs = model.tokenize(text.encode(), add_bos=True, special=True)
        tokens += len(theirs)
        if own == theirs:
            continue
        if any(c in text for c in left_out):
            gaps += 1
        elif of_one_vintage(text):
            wrong.append((text, own, theirs))
        else:
            vintage += 1
    print(f"{len(texts)} texts, {tokens} tokens: {len(wrong)} differ; besides, {vintage} with code points of another vintage "
          f"and {gaps} with bytes that have no piece")
    for text, own, theirs in wrong[:5]:
        print(f"  text   {text!a}\n  ours   {own}\n  theirs {theirs}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
