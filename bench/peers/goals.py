# SPDX-License-Identifier: Apache-2.0
"""What each number has to reach, and what would be remarkable. Shares in percent of the peak of the same rounds."""
SHAPES = ["1x8 64 64", "1x12 128 32", "1x12 512 32", "1x9/3 512 64 causal", "1x9/3 2048 64 causal", "1x9/3 8192 64 causal",
          "1x9/3 2048 64", "32x12 128 32"]
LEAST = {"AVX2": [55, 59, 66, 58, 70, 75, 74, 55], "AVX-512": [66, 66, 72, 66, 75, 79, 81, 62]}
MEDAL = {"AVX2": [64, 68, 73, 67, 77, 82, 81, 65], "AVX-512": [share + 7 for share in LEAST["AVX-512"]]}
BF16 = (60, 72)          # percent of the peak of bf16, from 512 keys on
PEER = (1.0, 1.15)       # times as fast as the fastest peer, each shape
PEER_MEAN = (1.35, 1.6)  # geometric mean of them
EAGER = (8, 15)          # times as fast as the eager way, causal 2048
ROWS = (6, 3)            # percent more time, from 512 keys on
ALL = (25, 12)
ENCODER = (1.12, 1.25)   # times as fast as the fastest peer, each shape
TOKENIZER = {"WordPiece": (10, 15), "BPE": (10, 15), "Unigram": (4, 8)}  # times the tokenizers library, one thread
MEMORY = (32, 8)         # MB
THREADS = (1.85, 1.95)   # times as fast with two threads, what takes over 5 ms
LLAMA = {"AVX2": {"prompt": (1.6, 2.2), "decode": (0.9, 1.15)}, "AVX-512": {"prompt": (1.1, 1.5), "decode": (0.9, 1.15)}}
LLAMA_BF16 = {"prompt": (1.0, 1.2), "decode": (1.0, 1.15)}  # a file in BF16, float activations
LLAMA_ROUNDED = (1.3, 1.7)                                   # the same with activations in BF16, a prompt
FIRST_TOKEN = (0.35, 0.15)                                   # seconds
RESIDENT = {"float": (150, 110), "bf16": (150, 70)}          # MB over the size of the file, 2048 tokens
LOOKS = (10, 5)                                              # percent more time
EAGER_SHAPE = "1x9/3 2048 64 causal"
LONG = 512               # keys


def machine_class(features):
    return "AVX2" if features == "AVX2" else "AVX-512" if features.startswith("AVX-512") else None


def share_goals(features):
    """shape -> (least, medal)"""
    name = machine_class(features)
    return dict(zip(SHAPES, zip(LEAST[name], MEDAL[name]))) if name else {}
