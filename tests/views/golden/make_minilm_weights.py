#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/views/data/cat_sat_mat.f32: the weights of all heads of minilm on one sentence, from PyTorch.

Layout: little-endian float32 [layer 6, head 12, query 8, key 8]; tokens [CLS] the cat sat on the mat [SEP].
Needs torch and transformers.

    python3 tests/views/golden/make_minilm_weights.py FOLDER_OF_MINILM
"""
import pathlib
import sys

import torch
from transformers import AutoModel, AutoTokenizer

SENTENCE = "The cat sat on the mat"


def main(folder: str) -> None:
    torch.use_deterministic_algorithms(True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        attentions = model(**inputs, output_attentions=True).attentions
    weights = torch.stack(attentions)[:, 0].contiguous()
    pieces = tokenizer.convert_ids_to_tokens(inputs.input_ids[0])
    assert pieces == "[CLS] the cat sat on the mat [SEP]".split(), pieces
    assert tuple(weights.shape) == (6, 12, 8, 8), weights.shape
    target = pathlib.Path(__file__).resolve().parent.parent / "data" / "cat_sat_mat.f32"
    target.write_bytes(weights.numpy().astype("<f4").tobytes())
    print(f"{target.name}: {target.stat().st_size} bytes; ids {inputs.input_ids[0].tolist()}")


if __name__ == "__main__":
    main(sys.argv[1])
