#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, and checks, what the tests of the tokenizer of a GGUF compare with: the ids of llama.cpp.

  make_llama_golden.py --name smollm2 --model MODEL.gguf --packages FOLDER [--encoder build/bin/encode_lines] [--check]

Names and their models: smollm2 smollm2-135m-instruct, gemma gemma-3-270m (whose files lie in tests/gemma/data). FOLDER
and texts are those of make_golden.py; NAME_golden.json holds the ids of the texts of bert_golden.json in their order, one text a line, NAME_mixed.json the
digests of 10 MB. With --encoder, our program encodes both sets and must give the same ids. Made with llama-cpp-python
0.3.36.
"""
import argparse
import json
import subprocess
import sys

import llama_cpp

from make_golden import DATA, golden_texts, keep, pack
from mixed_text import mixed_json, mixed_texts


def compare(encoder, gguf, texts, theirs):
    """Runs our program on the texts; True if it gives the same ids."""
    run = subprocess.run([encoder, gguf], input=pack(texts), capture_output=True, check=True)
    ours = [[int(token.split(",")[0]) for token in line.split()] for line in run.stdout.decode().split("\n")]
    wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
    print(f"{len(texts)} texts, {sum(map(len, theirs))} tokens: {len(wrong)} differ")
    for i in wrong[:5]:
        print(f"  text   {texts[i]!a}\n  ours   {ours[i]}\n  theirs {theirs[i]}")
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    for name in ("--name", "--model", "--packages"):
        parser.add_argument(name, required=True)
    parser.add_argument("--encoder")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    model = llama_cpp.Llama(arguments.model, vocab_only=True, verbose=False)
    good, results = True, {}
    for name, texts in (("golden", golden_texts(arguments.packages)), ("mixed", mixed_texts(DATA / "bert_golden.json"))):
        ids = [model.tokenize(text.encode(), add_bos=True, special=True) for text in texts]
        if arguments.encoder:
            good &= compare(arguments.encoder, arguments.model, texts, ids)
        results[name] = (texts, ids)

    texts, ids = results["golden"]
    assert texts == [row[0] for row in json.loads((DATA / "bert_golden.json").read_text())]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in ids)
    texts, ids = results["mixed"]
    data = DATA.parents[1] / "gemma" / "data" if arguments.name == "gemma" else DATA
    files = {f"{arguments.name}_golden.json": f"[\n{lines}\n]\n",
             f"{arguments.name}_mixed.json": mixed_json(texts, ids, sum(map(len, ids)))}
    for name, content in files.items():
        good &= keep(data / name, content, arguments.check)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
