#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/minilm_*.safetensors: what PyTorch's eager attention in float32 says about minilm.

    python make_minilm_golden.py MODEL_FOLDER

MODEL_FOLDER is the fetched model (config.json, model.safetensors, tokenizer.json). Needs torch, transformers,
tokenizers, safetensors, numpy. Each file holds ids [seq] and, for texts up to 16 tokens, weights [layers, heads, seq,
seq] and hidden [seq, d_model]; for longer ones 4,096 sampled places of both: weight_places [4096, 4] (layer, head,
query, key) with weight_values [4096], hidden_places [4096, 2] (position, component) with hidden_values [4096]. Half
of the weight places are the strongest key of a random row, half are anywhere; every layer and head is among them.
Metadata: name, text (absent where ids were given without one).
"""
import pathlib
import random
import sys

import numpy
import torch
import transformers
from safetensors.numpy import save_file
from tokenizers import Tokenizer

SEED = 20261
PLACES = 4096
EVERY_WEIGHT_UP_TO = 16

NOUNS = ("river library clock mountain garden letter engine window sailor teacher planet orchestra lantern harbour "
         "merchant forest bridge kitchen painter compass").split()
VERBS = "crosses remembers builds follows paints opens repairs describes watches carries".split()
ADJECTIVES = "old quiet bright narrow unfamiliar thick blue distant careful extraordinary".split()


def prose(sentences):
    """English of a fixed seed: sentences of a fixed pattern."""
    choice = random.Random(SEED).choice
    return " ".join(f"The {choice(ADJECTIVES)} {choice(NOUNS)} {choice(VERBS)} the {choice(NOUNS)}, and no "
                    f"{choice(NOUNS)} {choice(VERBS)} its {choice(ADJECTIVES)} {choice(NOUNS)}."
                    for _ in range(sentences))


TEXTS = {
    "cat": "The cat sat on the mat",
    "single_character": "a",
    "chinese": "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002",
    "markup": "</script><img src=x> & \"quoted\" \u00fcn\u00efc\u00f6de \U0001f600",
    "sixteen": "An attention head reads every other word before it decides what matters most.",
    "two_sentences": prose(2),
    "six_sentences": prose(6),
    "ten_sentences": prose(10),
}


def sample(generator, weights, hidden):
    """Places and values of weights [layers, heads, seq, seq] and hidden [seq, d_model]."""
    layers, heads, seq, _ = weights.shape
    places = numpy.empty((PLACES, 4), numpy.int32)
    head = numpy.arange(PLACES) % (layers * heads)
    places[:, 0], places[:, 1] = head // heads, head % heads
    places[:, 2] = generator.integers(seq, size=PLACES)
    places[:, 3] = generator.integers(seq, size=PLACES)
    strongest = weights.argmax(-1)
    half = slice(PLACES // 2, PLACES)
    places[half, 3] = strongest[places[half, 0], places[half, 1], places[half, 2]]
    hidden_places = numpy.stack([generator.integers(seq, size=PLACES),
                                 generator.integers(hidden.shape[1], size=PLACES)], axis=1).astype(numpy.int32)
    return {
        "weight_places": places,
        "weight_values": weights[tuple(places.T)],
        "hidden_places": hidden_places,
        "hidden_values": hidden[tuple(hidden_places.T)],
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    output = pathlib.Path(__file__).resolve().parent.parent / "data"
    output.mkdir(exist_ok=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()

    inputs = {"one_token": (None, [101])}
    inputs |= {name: (text, tokenizer.encode(text).ids) for name, text in TEXTS.items()}
    words = prose(40).split(" ")
    while len(tokenizer.encode(" ".join(words)).ids) > 512:
        words.pop()
    longest = " ".join(words)
    inputs["longest"] = (longest, tokenizer.encode(longest).ids)
    assert len(inputs["longest"][1]) == 512, len(inputs["longest"][1])

    generator = numpy.random.default_rng(SEED)
    for name, (text, ids) in inputs.items():
        with torch.no_grad():
            result = model(input_ids=torch.tensor([ids]), output_attentions=True)
        weights = numpy.stack([layer[0].numpy() for layer in result.attentions])
        hidden = result.last_hidden_state[0].numpy()
        tensors = {"ids": numpy.array(ids, numpy.int64)}
        if len(ids) <= EVERY_WEIGHT_UP_TO:
            tensors |= {"weights": weights, "hidden": hidden}
        else:
            tensors |= sample(generator, weights, hidden)
        metadata = {"name": name} | ({} if text is None else {"text": text})
        path = output / f"minilm_{name}.safetensors"
        save_file({key: numpy.ascontiguousarray(value) for key, value in tensors.items()}, path, metadata)
        assert path.stat().st_size < 200_000, path
        print(f"{path.name}: {len(ids)} tokens, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
