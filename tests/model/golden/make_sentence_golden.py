#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes NAME_sentences.safetensors: where one word of each of the two sentences of docs/two_sentences.md looks, in every
head of a decoder, as transformers' float run of its GGUF has it. Prints the heads that give each other word most.

    python make_sentence_golden.py smollm2|gemma PATH_OF_THE_GGUF --program build/bin/clearhead

Needs torch, transformers, accelerate, gguf, safetensors, numpy. For sentence i: i.ids [seq], i.query [1] (the last token of
the word that looks) and i.row [layers, heads, seq].
"""
import argparse
import json
import pathlib
import subprocess

import numpy
import torch
import transformers
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = {"smollm2": ROOT / "tests/model/data", "gemma": ROOT / "tests/gemma/data"}
# "Xiaoming borrowed a thick book in the library", and the word for book.
SENTENCES = [("The cat sat on the mat", "mat"),
             ("\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002", "\u4e66")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=DATA)
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--program", default=ROOT / "build/bin/clearhead")
    arguments = parser.parse_args()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.path.parent, gguf_file=arguments.path.name, dtype=torch.float32, attn_implementation="eager").eval()
    tensors = {}
    for i, (text, word) in enumerate(SENTENCES):
        run = subprocess.run([arguments.program, "tokenize", "--json", "--model", arguments.path, text], check=True,
                             stdout=subprocess.PIPE)
        tokens = json.loads(run.stdout)["tokens"]
        end = len(text[: text.rindex(word) + len(word)].encode())
        query = max(at for at, token in enumerate(tokens) if not token["special"] and token["offsets"][1] <= end)
        ids = [token["id"] for token in tokens]
        with torch.no_grad():
            result = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
        row = numpy.stack([layer[0, :, query].numpy() for layer in result.attentions])  # [layers, heads, seq]
        tensors[f"{i}.ids"] = numpy.array(ids, dtype=numpy.int64)
        tensors[f"{i}.query"] = numpy.array([query], dtype=numpy.int64)
        tensors[f"{i}.row"] = row
        print(f"{text}: token {query}, {tokens[query]['text']!r}")
        for key in range(query):
            best = sorted(((float(row[at][key]), at) for at in numpy.ndindex(row.shape[:2])), reverse=True)[:3]
            print(f"  {tokens[key]['text']!r}: " + ", ".join(f"layer {l} head {h} {w:.2f}" for w, (l, h) in best))
    out = DATA[arguments.name] / f"{arguments.name}_sentences.safetensors"
    save_file(tensors, out)
    print(out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
