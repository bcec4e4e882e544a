#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes NAME_golden.safetensors: what transformers' float run of the GGUF of a model says, on real texts.

    python make_gguf_golden.py smollm2|gemma PATH_OF_THE_GGUF --program build/bin/clearhead

Needs torch, transformers, accelerate, gguf, safetensors, numpy. The ids are those of our tokenizer, whose own tests
compare it with llama.cpp.

For text i of LENGTHS (lengths 6, 41 and 700): length.i.ids [seq]; length.i.logits, the last token's, of every STEPth
token of the vocabulary; length.i.places [2048, 4] (layer, head, query, key) and length.i.weights [2048].
For prompt i of PROMPTS: prompt.i.ids [seq]; prompt.i.logits as above; prompt.i.greedy [32], the likeliest tokens that
follow (what would end the text is passed over), and prompt.i.margin [32], how far the logit of each stands above the
next one: printed where it is so small that two float runs may take either.
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
LENGTHS = [6, 41, 700]
STEPS = {"smollm2": 48, "gemma": 256}
PLACES, CONTINUED, NEAR = 2048, 32, 2e-3
BOOK = "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002"
ENGLISH = [
    "The cat sat on the", "The capital of France is", "Once upon a time, in a small village by the sea,",
    "Water boils at a temperature of", "def fibonacci(n):\n", "1, 2, 3, 4, 5,",
    "Dear Sir or Madam,\n\nI am writing to", "The three most important inventions of the nineteenth century were",
]
PROMPTS = {
    "smollm2": ENGLISH,
    "gemma": ENGLISH[:5] + [BOOK, "\u4e2d\u56fd\u7684\u9996\u90fd\u662f", "\u6625\u7720\u4e0d\u89c9\u6653\uff0c"],
}


def ids_of(program, path, text):
    run = subprocess.run([program, "tokenize", "--json", "--model", path, "-"], input=text.encode(), check=True,
                         stdout=subprocess.PIPE)
    return [token["id"] for token in json.loads(run.stdout)["tokens"]]


def greedy(model, ids):
    """The likeliest tokens after ids, and their margins."""
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends] if ends is not None else []
    result = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                            max_new_tokens=CONTINUED, min_new_tokens=CONTINUED, output_logits=True,
                            return_dict_in_generate=True)
    margins = []
    for logits in result.logits:
        logits[0, ends] = -1e30
        top = logits[0].topk(2)
        margins.append(float(top.values[0] - top.values[1]))
    return result.sequences[0, len(ids):].tolist(), margins


def drawn_places(generator, shape, seq):
    """Half of them anywhere, half near the query or at the first token, where decoders look."""
    layer, head = generator.integers(0, shape[0], PLACES), generator.integers(0, shape[1], PLACES)
    query = generator.integers(0, seq, PLACES)
    key = (generator.random(PLACES) * (query + 1)).astype(numpy.int64)
    near = numpy.maximum(query - generator.integers(0, 6, PLACES), 0)
    kind = generator.integers(0, 4, PLACES)
    key = numpy.where(kind == 0, near, numpy.where(kind == 1, 0, key))
    return numpy.stack([layer, head, query, key], axis=1).astype(numpy.int32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=DATA)
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--program", default=ROOT / "build/bin/clearhead")
    arguments = parser.parse_args()
    step = STEPS[arguments.name]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.path.parent, gguf_file=arguments.path.name, dtype=torch.float32, attn_implementation="eager").eval()
    generator = numpy.random.default_rng(20266)
    passage = (ROOT / "LICENSE").read_text("utf-8")
    tensors = {}
    with torch.no_grad():
        for i, length in enumerate(LENGTHS):
            ids = ids_of(arguments.program, arguments.path, passage)[:length]
            result = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
            weights = numpy.stack([layer[0].numpy() for layer in result.attentions])
            places = drawn_places(generator, weights.shape, length)
            tensors[f"length.{i}.ids"] = numpy.array(ids, dtype=numpy.int64)
            tensors[f"length.{i}.logits"] = result.logits[0, -1].numpy()[::step].copy()
            tensors[f"length.{i}.places"] = places
            tensors[f"length.{i}.weights"] = weights[tuple(places.T)]
            print(f"length {length}: weights of {PLACES} places, mean {weights[tuple(places.T)].mean():.3f}", flush=True)
        for i, text in enumerate(PROMPTS[arguments.name]):
            ids = ids_of(arguments.program, arguments.path, text)
            found, margins = greedy(model, ids)
            tensors[f"prompt.{i}.ids"] = numpy.array(ids, dtype=numpy.int64)
            tensors[f"prompt.{i}.logits"] = model(input_ids=torch.tensor([ids])).logits[0, -1].numpy()[::step].copy()
            tensors[f"prompt.{i}.greedy"] = numpy.array(found, dtype=numpy.int64)
            tensors[f"prompt.{i}.margin"] = numpy.array(margins, dtype=numpy.float32)
            ties = [f"{at} ({margin:.1e})" for at, margin in enumerate(margins) if margin < NEAR]
            print(f"{text!r}: smallest margin {min(margins):.4f}" + (f", near ties at {', '.join(ties)}" if ties else ""),
                  flush=True)
    out = DATA[arguments.name] / f"{arguments.name}_golden.safetensors"
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out)
    print(out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
