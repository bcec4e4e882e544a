#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/format/data/peer.safetensors with the Python package `safetensors` (needs torch).

    python3 tests/format/golden/make_peer.py tests/format/data/peer.safetensors
"""
import sys

import torch
from safetensors.torch import save_file

tensors = {
    "f32": torch.tensor([[-1.0, 0.0, 1.0], [1.5, 2.0, 2.5]]),
    "scalar": torch.tensor(7.0),
    "f16": torch.tensor([6e-8, 65504.0, -1.0], dtype=torch.float16),
    "bf16": torch.tensor([-3.14, 1e30], dtype=torch.bfloat16),
    "f64": torch.tensor([0.1], dtype=torch.float64),
    "i64": torch.tensor([-(2**63), 2**63 - 1]),
    "i32": torch.tensor([1, -2], dtype=torch.int32),
    "u8": torch.tensor([0, 1, 255], dtype=torch.uint8),
    "bool": torch.tensor([True, False]),
    "empty": torch.zeros(0, 5),
}
save_file(tensors, sys.argv[1], metadata={"format": "pt", "note": "\u4e66 \"quoted\""})
