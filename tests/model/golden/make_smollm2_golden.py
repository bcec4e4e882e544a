#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/smollm2_golden.safetensors: what transformers' float run of the GGUF of smollm2-135m-instruct
says.

    python make_smollm2_golden.py PATH_OF_THE_GGUF

Needs torch, transformers, accelerate, gguf, safetensors, numpy. For text i of TEXTS: ids.i [seq]; weights.i [heads, seq,
seq] of layer LAYERS[i]; logits.i [2000], the last token's, of every 24th token of the vocabulary; greedy.i [32], the
tokens that follow.
"""
import pathlib
import sys

import numpy
import torch
import transformers
from safetensors.numpy import save_file

# The first is "The cat sat on the"; the others are ids drawn from a fixed seed within the same vocabulary.
FIRST = [504, 2644, 2643, 335, 260]
LENGTHS = [3, 8, 17, 33, 64, 129, 200]
LAYERS = [0, 5, 10, 15, 20, 25, 29, 12]
STEP = 24


def main():
    path = pathlib.Path(sys.argv[1])
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager").eval()
    generator = numpy.random.default_rng(20266)
    texts = [FIRST] + [generator.integers(20, 40000, size=length).tolist() for length in LENGTHS]
    tensors = {}
    for i, ids in enumerate(texts):
        with torch.no_grad():
            result = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
            greedy = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                    max_new_tokens=32, min_new_tokens=32, do_sample=False)
        tensors[f"ids.{i}"] = numpy.array(ids, dtype=numpy.int64)
        if len(ids) <= 33:
            tensors[f"weights.{i}"] = result.attentions[LAYERS[i]][0].numpy()
        tensors[f"logits.{i}"] = result.logits[0, -1].numpy()[::STEP][:2000].copy()
        tensors[f"greedy.{i}"] = greedy[0, len(ids):].numpy().astype(numpy.int64)
        print(i, len(ids), greedy[0, len(ids):].tolist()[:8])
    out = pathlib.Path(__file__).resolve().parent.parent / "data" / "smollm2_golden.safetensors"
    save_file(tensors, out)
    print(out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
