#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuild attention weights from a trace, bit for bit, with numpy alone.

    clearhead record "The cat sat on the mat" --stages query,key,row_reference,row_sum,weights --output t.safetensors
    python3 examples/rebuild_weights.py t.safetensors [--plain]

A trace need not hold weights: query and key (rotated_query and rotated_key in a model that turns them), row_reference
and row_sum are enough. Every weight follows from them by the recipe of docs/traces.md, and this file is that recipe as
another reader would write it. If the trace holds weights, or kernel scores, both are compared; the exit code is 1 if a
weight differs by more than 2e-7. --plain takes softmax in double instead, which is not what the kernel computed: each
score of the kernel carries its rounding, and where scores are large that is more than 2e-7 of a weight.
"""
import argparse
import json
import struct
import sys

import numpy

F32, F64 = numpy.float32, numpy.float64
LOG2E = 1.4426950408889634
TOLERANCE = 2e-7


class Trace:
    """A safetensors file of floats: 8 bytes of length, a header in JSON, numbers."""

    def __init__(self, path):
        self.data = numpy.fromfile(path, numpy.uint8)
        length, = struct.unpack("<Q", self.data[:8].tobytes())
        self.header = json.loads(self.data[8:8 + length].tobytes())
        self.body = self.data[8 + length:]
        metadata = self.header.pop("__metadata__")
        self.attention, self.layers, self.heads = (json.loads(metadata[k]) for k in ("attention", "layers", "heads"))

    def find(self, layer, *stages):
        """The first of these stages of a layer that the trace holds, or None."""
        for stage in stages:
            entry = self.header.get(f"layers.{layer}.{stage}")
            if entry:
                begin, end = entry["data_offsets"]
                return self.body[begin:end].view("<f4").reshape(entry["shape"])
        return None


def fma(a, b, c):
    """a b + c in float, rounded once. The product of two floats is exact in double; its sum with c is rounded to odd,
    which keeps what a second rounding needs to know (Boldo and Melquiond 2008)."""
    product, c = a.astype(F64) * b, numpy.asarray(c, F64)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)  # exactly what the sum lost (Knuth's two-sum)
    bits = total.view(numpy.int64)
    step = numpy.where((error > 0) == (total > 0), 1, -1)
    return numpy.where((error != 0) & (bits & 1 == 0), bits + step, bits).view(F64).astype(F32)


def polynomial(x, coefficients):
    total = numpy.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = fma(total, x, F32(c))
    return total


def exp2(t):
    """2^t for t < 127 as the kernels compute it: n + f with |f| <= 1/2, a polynomial for 2^f; 0 below 2^-126."""
    shifter = F32(3 * 2**22 + 127)  # sums have steps of 1, and their last bits are n + 127
    t = t.astype(F32)
    with numpy.errstate(invalid="ignore"):
        shifted = t + shifter
        f = t - (shifted - shifter)
    power = (shifted.view(numpy.int32) << 23).view(F32)
    coefficients = (1.0, 6.93146967e-1, 2.40221197e-1, 5.55071327e-2, 9.67554133e-3, 1.3276472e-3)
    seen = t >= -126
    return numpy.where(seen, polynomial(numpy.where(seen, f, F32(0)), coefficients) * power, F32(0))


def tanh(x):
    """As the kernels compute it: x + x^3 P(x^2) below 0.6, else 1 - 2 / (2^(2 log2 e |x|) + 1)."""
    square, size = x * x, numpy.abs(x)
    small = fma(x * square, polynomial(square, (-3.33333e-1, 1.3331936e-1, -5.3784598e-2, 2.0797668e-2, -5.896135e-3)), x)
    large = F32(1) - F32(2) / (exp2(numpy.minimum(size, F32(20)) * F32(2.88539008)) + F32(1))
    return numpy.copysign(numpy.where(size < F32(0.6), small, large), x)


def visible(attention, layer, length):
    """Which key each query may see, by position."""
    query, key = numpy.arange(length)[:, None], numpy.arange(length)[None, :]
    position = query + (0 if attention["causal"] == "top_left" else attention["key_offset"])
    left, right = attention.get("left_windows"), attention["right_window"]
    left = left[layer] if left else attention["left_window"]
    seen = numpy.full((length, length), True)
    if attention["causal"] != "none":
        seen &= key <= position
    if left is not None:
        seen &= key >= position - left
    if right is not None:
        seen &= key <= position + right
    return seen


def heads_of(trace, query, key):
    """query and key as [heads, length, head_dim]; a head reads kv head h / (heads / kv heads)."""
    group = trace.attention["num_heads"] // trace.attention["num_kv_heads"]
    kept = sorted({head // group for head in trace.heads})  # the kv heads that stand on the key's axis
    places = [kept.index(head // group) for head in trace.heads]
    return query[0].transpose(1, 0, 2), key[0].transpose(1, 0, 2)[places]


def scale_of(attention):
    return F32(attention["scale"]) if attention["scale"] is not None else F32(1 / numpy.sqrt(attention["head_dim"]))


def kernel_scores(trace, layer, q, k):
    attention, scale, cap = trace.attention, F64(scale_of(trace.attention)), trace.attention["soft_cap"]
    q = q * F32(scale / F64(F32(cap)) if cap else scale * LOG2E)  # rounded once
    scores = numpy.zeros((q.shape[0], q.shape[1], k.shape[1]), F32)
    for d in range(q.shape[2]):  # in order
        scores = fma(q[:, :, None, d], k[:, None, :, d], scores)
    if cap:
        scores = tanh(scores) * F32(F64(F32(cap)) * LOG2E)
    if attention["alibi_slopes"]:
        slopes = numpy.array(attention["alibi_slopes"], F32)[trace.heads]
        length = q.shape[1]
        distance = (numpy.arange(length)[None, :] - numpy.arange(length)[:, None] - attention["key_offset"]).astype(F32)
        scores = fma(slopes[:, None, None] * distance, F32(LOG2E), scores)
    return numpy.where(visible(attention, layer, q.shape[1]), scores, F32(-numpy.inf))


def weights(scores, reference, total):
    """[heads, query, key] from kernel scores and what the trace keeps of each row."""
    nothing = total == 0
    r, l = numpy.where(nothing, F32(0), reference)[:, :, None], numpy.where(nothing, F32(1), total)[:, :, None]
    return exp2(numpy.where(scores == -numpy.inf, scores, scores - r)) / l


def plain_weights(trace, layer, q, k):
    """Softmax in double of the same numbers: the same mathematics, another rounding."""
    attention = trace.attention
    scores = numpy.einsum("hqd,hkd->hqk", q.astype(F64), k.astype(F64)) * F64(scale_of(attention))
    if attention["soft_cap"]:
        scores = attention["soft_cap"] * numpy.tanh(scores / attention["soft_cap"])
    scores = numpy.where(visible(attention, layer, q.shape[1]), scores, -numpy.inf)
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description="Rebuild attention weights from a trace, bit for bit")
    parser.add_argument("trace")
    parser.add_argument("--plain", action="store_true", help="by softmax in double instead of the kernel's recipe")
    flags = parser.parse_args()
    trace, differing, largest, compared, score_bits = Trace(flags.trace), 0, 0.0, 0, 0
    for layer in trace.layers:
        query, key = trace.find(layer, "rotated_query", "query"), trace.find(layer, "rotated_key", "key")
        reference, total = trace.find(layer, "row_reference"), trace.find(layer, "row_sum")
        if any(part is None for part in (query, key, reference, total)):
            sys.exit(f"{flags.trace}: expected query, key, row_reference and row_sum of layer {layer}; record them too")
        q, k = heads_of(trace, query, key)
        scores = kernel_scores(trace, layer, q, k)
        rebuilt = plain_weights(trace, layer, q, k) if flags.plain else weights(scores, reference[0], total[0])
        recorded = trace.find(layer, "weights")
        if recorded is not None:
            compared += recorded.size
            differing += int(numpy.sum(rebuilt.astype(F32).view(numpy.int32) != recorded[0].view(numpy.int32)))
            largest = max(largest, float(numpy.max(numpy.abs(rebuilt - recorded[0].astype(F64)))))
        recorded_scores = trace.find(layer, "kernel_scores")
        if recorded_scores is not None:
            score_bits += int(numpy.sum(scores.view(numpy.int32) != recorded_scores[0].view(numpy.int32)))
        print(f"layer {layer}: rows sum to 1 within {numpy.max(numpy.abs(rebuilt.sum(-1, dtype=F64) - 1)):.1e}")
    if compared:
        print(f"{compared} weights: {differing} differ in a bit, the largest difference is {largest:.1e}")
        print(f"kernel scores that differ in a bit: {score_bits}")
    if largest > TOLERANCE:
        sys.exit(f"{flags.trace}: expected weights within {TOLERANCE:.0e}; found {largest:.1e}")


if __name__ == "__main__":
    main()
