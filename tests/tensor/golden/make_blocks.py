#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/tensor/data/blocks.safetensors: random blocks of every type, and their values by the gguf package.

    python make_blocks.py

Needs numpy, safetensors and gguf. For each type, TYPE.blocks [bytes] U8 and TYPE.values [values] F32.
"""
import pathlib

import gguf
import numpy
from safetensors.numpy import save_file

BLOCKS = 6
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}


def main():
    generator = numpy.random.default_rng(20264)
    tensors = {}
    for name, places in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = generator.integers(256, size=(BLOCKS, size)).astype(numpy.uint8)
        for i, place in enumerate(places):
            scales = generator.normal(0, 0.02, BLOCKS).astype(numpy.float16)
            scales[0] = 2.0**-24 * (3 + i)  # a subnormal one
            blocks[:, place:place + 2] = scales.view(numpy.uint8).reshape(BLOCKS, 2)
        tensors[name + ".blocks"] = blocks.reshape(-1)
        tensors[name + ".values"] = gguf.quants.dequantize(blocks, kind).astype(numpy.float32).reshape(-1)
    path = pathlib.Path(__file__).resolve().parent.parent / "data" / "blocks.safetensors"
    save_file(tensors, path)
    print(path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
