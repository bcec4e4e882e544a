# SPDX-License-Identifier: Apache-2.0
"""Makes data/trace_from_python.safetensors with the safetensors package: a trace that another writer has written.

python3 make_trace.py OUTPUT
"""

import json
import sys

import numpy
from safetensors.numpy import save_file


def counting(*shape):
    return numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape)


tokens = [
    {"text": "[CLS]", "id": 101, "offsets": [0, 0], "special": True},
    {"text": "h\u00e9", "id": 7, "offsets": [0, 3], "special": False},
    {"text": "you", "id": 9, "offsets": [4, 7], "special": False},
]
save_file(
    {"embedding": counting(1, 3, 5), "layers.2.weights": counting(1, 2, 3, 3), "layers.0.key": counting(1, 3, 2, 6)},
    sys.argv[1],
    {
        "clearhead.version": "0.1.0",
        "model": "tiny",
        "text": "h\u00e9 you",
        "tokens": json.dumps(tokens),
        "attention": json.dumps({"num_heads": 4}),
        "num_layers": "3",
        "num_heads": "4",
        "num_kv_heads": "2",
        "layers": "[0, 2]",
        "heads": "[1, 2]",
    },
)
