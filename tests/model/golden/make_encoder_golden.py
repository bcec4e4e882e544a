#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/NAME_*.safetensors: what PyTorch's eager attention in float32 says about an encoder.

    python make_encoder_golden.py NAME MODEL_FOLDER

NAME is minilm or multilingual-e5-small (files e5_*), MODEL_FOLDER the fetched model (config.json, model.safetensors,
tokenizer.json). Needs torch, transformers, tokenizers, safetensors, numpy. Each file holds ids [seq] and, for texts up to 16 tokens, weights [layers, heads, seq,
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


# Chinese of a fixed seed: who, where, did what.
PEOPLE = "\u5c0f\u660e \u8001\u5e08 \u533b\u751f \u827a\u672f\u5bb6 \u5979\u7684\u670b\u53cb".split()
PLACES_ZH = "\u56fe\u4e66\u9986 \u5317\u4eac \u5b66\u6821 \u5c71\u4e0a \u706b\u8f66\u7ad9".split()
DEEDS = ("\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66 \u770b\u89c1\u4e86\u4e00\u53ea\u9ed1\u732b "
         "\u5199\u4e86\u4e09\u5c01\u957f\u4fe1 \u559d\u4e86\u4e00\u676f\u70ed\u8336").split()


def chinese(sentences):
    choice = random.Random(SEED).choice
    return "".join(f"{choice(PEOPLE)}\u5728{choice(PLACES_ZH)}{choice(DEEDS)}\uff0c{choice(PEOPLE)}\u4e5f"
                   f"{choice(DEEDS)}\u3002" for _ in range(sentences))


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
E5_TEXTS = {name: TEXTS[name] for name in ("cat", "chinese", "markup")} | {"five_sentences": chinese(5) + prose(1)}


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
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    short, texts, long_text, first = {
        "minilm": ("minilm", TEXTS, lambda: prose(40).split(" "), 101),
        "multilingual-e5-small": ("e5", E5_TEXTS, lambda: (chinese(25) + prose(18)).split(" "), 0),
    }[name]
    output = pathlib.Path(__file__).resolve().parent.parent / "data"
    output.mkdir(exist_ok=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()

    inputs = {"one_token": (None, [first])}
    inputs |= {name: (text, tokenizer.encode(text).ids) for name, text in texts.items()}
    words = long_text()
    while len(tokenizer.encode(" ".join(words)).ids) > 512:
        words.pop()
    longest = " ".join(words)
    inputs["longest"] = (longest, tokenizer.encode(longest).ids)
    if short == "minilm":
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
        path = output / f"{short}_{name}.safetensors"
        save_file({key: numpy.ascontiguousarray(value) for key, value in tensors.items()}, path, metadata)
        assert path.stat().st_size < 200_000, path
        print(f"{path.name}: {len(ids)} tokens, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
