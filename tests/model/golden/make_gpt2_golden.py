#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/gpt2/ and gpt2_*.safetensors: a small GPT-2 of random parameters, and what PyTorch's eager
attention in float32 says about it.

    python make_gpt2_golden.py

Needs torch, transformers, safetensors, numpy. gpt2/ holds config.json and model.safetensors as transformers saves them.
Each gpt2_*.safetensors holds ids [seq], weights [layers, heads, seq, seq], hidden [seq, d_model] and the last
token's logits [vocab].
"""
import pathlib

import numpy
import torch
import transformers
from safetensors.numpy import save_file

SEED = 20262
SPREAD = 0.2  # of the parameters: weights between even and all on one key
LENGTHS = {"one_token": 1, "nine_tokens": 9, "all_positions": 40}


def random_model(generator):
    config = transformers.GPT2Config(vocab_size=100, n_positions=40, n_embd=32, n_layer=2, n_head=4, bos_token_id=0,
                                     eos_token_id=0)
    config._attn_implementation = "eager"
    model = transformers.GPT2LMHeadModel(config).float().eval()
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            middle = 1 if ".ln_" in name and name.endswith(".weight") else 0
            values = generator.normal(middle, SPREAD, tuple(parameter.shape)).astype(numpy.float32)
            parameter.copy_(torch.from_numpy(values))
    return model


def main():
    data = pathlib.Path(__file__).resolve().parent.parent / "data"
    generator = numpy.random.default_rng(SEED)
    model = random_model(generator)
    model.save_pretrained(data / "gpt2")
    (data / "gpt2" / "generation_config.json").unlink(missing_ok=True)
    for name, length in LENGTHS.items():
        ids = generator.integers(model.config.vocab_size, size=length)
        with torch.no_grad():
            result = model(input_ids=torch.from_numpy(ids[None]), output_attentions=True, output_hidden_states=True)
        tensors = {
            "ids": ids.astype(numpy.int64),
            "weights": numpy.stack([layer[0].numpy() for layer in result.attentions]),
            "hidden": result.hidden_states[-1][0].numpy(),
            "logits": result.logits[0, -1].numpy(),
        }
        save_file(tensors, data / f"gpt2_{name}.safetensors", {"name": name})
    paths = [*data.glob("gpt2/*"), *data.glob("gpt2_*")]
    for path in paths:
        print(f"{path.relative_to(data)}: {path.stat().st_size} bytes")
    assert sum(path.stat().st_size for path in paths) < 200_000


if __name__ == "__main__":
    main()
