#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/model/data/images/NAME/ and NAME_golden.safetensors for small vision transformers of random parameters,
with what PyTorch's eager attention in float32 says about them.

    python make_image_golden.py

Needs torch, transformers, safetensors, numpy. NAME/ holds config.json and model.safetensors as transformers saves them.
NAME_golden.safetensors holds pixels [channels, height, width], weights [layers, heads, seq, seq], embedding and hidden
[seq, d_model] (what enters layer 0, and the last hidden state).
"""
import pathlib

import numpy
import torch
import transformers
from safetensors.numpy import save_file

SPREAD = 0.25  # of the parameters: weights between even and all on one key
DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "images"
SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_channels": 3}

# The first has 3 x 5 patches that are not square either; with registers peers know square grids only.
MODELS = {
    "vit": lambda: transformers.ViTModel(transformers.ViTConfig(
        **SMALL, intermediate_size=40, image_size=[6, 20], patch_size=[2, 4])),
    "vit_without_bias": lambda: transformers.ViTForImageClassification(transformers.ViTConfig(
        **SMALL, intermediate_size=40, image_size=8, patch_size=4, qkv_bias=False)),
    "dinov2_with_registers": lambda: transformers.Dinov2WithRegistersModel(transformers.Dinov2WithRegistersConfig(
        **SMALL, mlp_ratio=2, image_size=12, patch_size=4, num_register_tokens=3)),
}


def random_model(make, generator):
    model = make().float().eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            is_gain = "norm" in name and name.endswith(".weight") or "layer_scale" in name
            values = generator.normal(1 if is_gain else 0, SPREAD, tuple(parameter.shape)).astype(numpy.float32)
            parameter.copy_(torch.from_numpy(values))
    return model


def main():
    for name, make in MODELS.items():
        generator = numpy.random.default_rng(list(name.encode()))
        model = random_model(make, generator)
        model.save_pretrained(DATA / name)
        body = model.base_model
        size = body.embeddings.patch_embeddings.image_size
        pixels = generator.normal(0, 1, (3, *size)).astype(numpy.float32)
        with torch.no_grad():
            result = body(pixel_values=torch.from_numpy(pixels[None]), output_attentions=True, output_hidden_states=True)
        save_file({
            "pixels": pixels,
            "weights": numpy.stack([layer[0].numpy() for layer in result.attentions]),
            "embedding": result.hidden_states[0][0].numpy(),
            "hidden": result.last_hidden_state[0].numpy(),
        }, DATA / f"{name}_golden.safetensors", {"name": name})
        size = sum(path.stat().st_size for path in [*(DATA / name).glob("*"), DATA / f"{name}_golden.safetensors"])
        print(name, size, "bytes")
        assert size < 200_000


if __name__ == "__main__":
    main()
