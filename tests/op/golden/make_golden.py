#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what PyTorch gives for attention on a grid of shapes, masks, biases and head counts.

    make_golden.py [FOLDER]        needs: torch, numpy, safetensors; FOLDER is tests/op/data by default

One safetensors file per case. Metadata: "operator" and "attributes" (for `clearhead op`) and "generated": inputs that
both sides compute, name -> {"seed", "shape", "factor"}; element i is hashed_value(seed, i) * factor, as in
tests/support/hashed_values.h. Masks stand in the file as in.NAME. Outputs stand as out.NAME; of those with more than
4,096 elements as out.NAME at 4,096 flat places places.NAME, drawn with a fixed seed. All in float32.
"""
import json
import pathlib
import sys

import numpy as np
import safetensors.numpy
import torch

PLACES = 4096


def hashed(seed, shape, factor=1.0):
    """The counter-based generator of tests/support/hashed_values.h."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed) << np.uint64(32)) + np.arange(np.prod(shape), dtype=np.uint64)
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    values = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return (values * np.float32(factor)).reshape(shape)


class Case:
    """One file in the making."""

    def __init__(self, name, operator, attributes):
        self.name, self.operator, self.attributes = name, operator, attributes
        self.generated, self.tensors = {}, {}

    def generate(self, name, shape, factor=1.0):
        seed = 1000 + len(self.generated)
        self.generated[name] = {"seed": seed, "shape": list(shape), "factor": factor}
        return torch.from_numpy(hashed(seed, shape, factor))

    def mask(self, name, values):
        self.tensors[f"in.{name}"] = values.numpy()
        return values

    def output(self, name, values):
        flat = np.ascontiguousarray(values.detach().numpy())
        if flat.size > PLACES:
            places = np.sort(np.random.default_rng(7).choice(flat.size, PLACES, replace=False)).astype(np.int64)
            self.tensors[f"places.{name}"] = places
            flat = flat.reshape(-1)[places]
        self.tensors[f"out.{name}"] = flat

    def write(self, folder):
        path = folder / f"{self.name}.safetensors"
        metadata = {"operator": self.operator, "attributes": json.dumps(self.attributes),
                    "generated": json.dumps(self.generated)}
        tensors = {name: np.ascontiguousarray(values) for name, values in self.tensors.items()}
        safetensors.numpy.save_file(tensors, path, metadata=metadata)
        assert path.stat().st_size < 200_000, path


def boolean_mask(shape, seed):
    """True = must not attend; key 0 stays visible, so that every row sees something."""
    mask = torch.from_numpy(hashed(seed, shape) < -0.3)
    mask[..., 0] = False
    return mask


def float_mask(shape, seed):
    mask = torch.from_numpy(hashed(seed, shape, 3.0))
    mask[boolean_mask(shape, seed + 1)] = -torch.inf
    return mask


def padding_mask(lengths, key_len):
    return torch.arange(key_len)[None, :] >= torch.tensor(lengths)[:, None]


def module_case(name, *, d_model=16, heads=4, query=5, key=None, batch=2, batch_first=False, bias=True, kdim=None,
                vdim=None, bias_kv=False, zero=False, attn=None, padding=None, average=False, is_causal=False):
    """attn: (kind, rank) of attn_mask; padding: lengths of key_padding_mask, or the same as a float mask if negative."""
    attributes = {"num_heads": heads, "batch_first": batch_first, "add_zero_attn": zero,
                  "average_attn_weights": average, "is_causal": is_causal}
    case = Case(f"module_{name}", "multi_head_attention", attributes)
    module = torch.nn.MultiheadAttention(d_model, heads, bias=bias, add_bias_kv=bias_kv, add_zero_attn=zero, kdim=kdim,
                                         vdim=vdim, batch_first=batch_first).eval()
    with torch.no_grad():
        for parameter, values in module.named_parameters():
            factor = 2.0 / values.shape[-1] ** 0.5 if "weight" in parameter else 0.5
            values.copy_(case.generate(parameter, values.shape, factor))
    key = key or query
    layout = lambda length, width: ([length, width] if batch is None else
                                    [batch, length, width] if batch_first else [length, batch, width])
    inputs = [case.generate("query", layout(query, d_model)), case.generate("key", layout(key, kdim or d_model)),
              case.generate("value", layout(key, vdim or d_model))]
    masks = {}
    if attn:
        kind, rank = attn
        shape = [query, key] if rank == 2 else [(batch or 1) * heads, query, key]
        values = (torch.ones(query, key).triu(1).bool() if kind == "causal" else
                  boolean_mask(shape, 50) if kind == "bool" else float_mask(shape, 50))
        masks["attn_mask"] = case.mask("attn_mask", values)
    if padding:
        values = padding_mask([abs(length) for length in padding], key)
        if padding[0] < 0:
            values = torch.zeros(values.shape).masked_fill(values, -torch.inf)
        masks["key_padding_mask"] = case.mask("key_padding_mask", values[0] if batch is None else values)
    with torch.no_grad():
        output, weights = module(*inputs, need_weights=True, average_attn_weights=average, is_causal=is_causal, **masks)
    case.output("attn_output", output)
    case.output("attn_output_weights", weights)
    return case


def product_case(name, *, batch=2, heads=3, kv_heads=3, query=4, key=6, dim=8, value_dim=8, mask=None, causal=False,
                 scale=None, factor=2.0):
    attributes = {"is_causal": int(causal)} | ({"scale": scale} if scale is not None else {})
    case = Case(f"product_{name}", "attention", attributes)
    q = case.generate("Q", [batch, heads, query, dim], factor)
    k = case.generate("K", [batch, kv_heads, key, dim], factor)
    v = case.generate("V", [batch, kv_heads, key, value_dim])
    values = None
    if mask:
        shape = [batch, heads, query, key]
        values = case.mask("attn_mask", ~boolean_mask(shape, 60) if mask == "bool" else float_mask(shape, 60))
    with torch.no_grad():
        case.output("Y", torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=values, is_causal=causal, scale=scale, enable_gqa=heads != kv_heads))
    return case


def cases():
    yield module_case("plain")
    yield module_case("batch_first", batch_first=True)
    yield module_case("unbatched", batch=None)
    yield module_case("no_bias", bias=False)
    for heads, d_model in [(1, 16), (3, 15), (8, 64), (16, 16)]:
        yield module_case(f"heads_{heads}_of_{d_model // heads}", heads=heads, d_model=d_model)
    yield module_case("cross", query=3, key=9)
    yield module_case("one_token", query=1, batch=1)
    yield module_case("kdim_vdim", query=3, key=7, kdim=10, vdim=6)
    yield module_case("kdim_vdim_bias_kv", query=3, key=7, kdim=10, vdim=6, bias_kv=True, batch_first=True)
    yield module_case("bias_kv", bias_kv=True)
    yield module_case("zero", zero=True)
    yield module_case("bias_kv_zero_unbatched", bias_kv=True, zero=True, batch=None)
    yield module_case("average", average=True)
    yield module_case("average_unbatched", average=True, batch=None)
    for kind in ["bool", "float"]:
        yield module_case(f"attn_{kind}_2d", attn=(kind, 2), query=6, key=8)
        yield module_case(f"attn_{kind}_3d", attn=(kind, 3), query=6, key=8)
        yield module_case(f"attn_{kind}_3d_unbatched", attn=(kind, 3), batch=None)
    yield module_case("padding", padding=[3, 5])
    yield module_case("padding_float", padding=[-3, -5])
    yield module_case("padding_unbatched", padding=[3], batch=None)
    yield module_case("causal", attn=("causal", 2), is_causal=True)
    yield module_case("everything", query=7, key=9, batch=3, batch_first=True, bias_kv=True, zero=True,
                      attn=("bool", 3), padding=[9, 4, 1], average=True)
    yield module_case("everything_float", query=7, key=9, batch=3, bias_kv=True, zero=True, attn=("float", 2),
                      padding=[-9, -4, -1])
    yield module_case("seed_64_by_512", d_model=512, heads=8, query=64, batch=None)
    yield module_case("seed_64_by_512_batch", d_model=512, heads=8, query=64, batch=3, batch_first=True,
                      padding=[64, 40, 7])
    yield module_case("two_tiles", d_model=32, heads=2, query=20, key=300, batch=2)
    yield module_case("three_tiles_average", d_model=24, heads=4, query=520, batch=1, average=True)

    yield product_case("plain")
    yield product_case("grouped", heads=6, kv_heads=2)
    yield product_case("sizes", dim=9, value_dim=5)
    yield product_case("bool_mask", mask="bool")
    yield product_case("float_mask", mask="float")
    yield product_case("causal", query=9, key=9, causal=True)
    yield product_case("scale", scale=0.3)
    yield product_case("large_scores", scale=1.0, factor=4.0, dim=64)
    yield product_case("two_tiles", query=40, key=400, dim=32, value_dim=32)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    count = 0
    for case in cases():
        case.write(folder)
        count += 1
    print(f"torch {torch.__version__}: {count} cases -> {folder}")


if __name__ == "__main__":
    main()
