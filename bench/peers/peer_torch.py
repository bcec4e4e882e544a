# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its fused attention, and the way that tools of inspection take, the whole matrix of weights kept."""
import math

import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
version = "PyTorch " + torch.__version__.split("+")[0]


def set_threads(threads):
    torch.set_num_threads(threads)


def heads_first(values):
    return torch.from_numpy(values).transpose(1, 2).contiguous()


def tokens_first(output):
    return output.transpose(1, 2).float().numpy()


def causal_mask(shape):
    visible = torch.ones(shape.query_len, shape.key_len).tril(shape.key_len - shape.query_len)
    return torch.where(visible > 0, 0.0, -math.inf)


def fused_ways(shape, query, key, value, dtype=torch.float32):
    """name -> (work, answer)"""
    query, key, value = (heads_first(values).to(dtype) for values in (query, key, value))
    repeated = [t.repeat_interleave(shape.group, 1) for t in (key, value)] if shape.group > 1 else [key, value]

    def own_groups():
        return F.scaled_dot_product_attention(query, key, value, is_causal=shape.causal, enable_gqa=shape.group > 1)

    def keys_repeated_before():
        return F.scaled_dot_product_attention(query, *repeated, is_causal=shape.causal)

    ways = {"sdpa": own_groups}
    if shape.group > 1:
        ways["sdpa, keys repeated before"] = keys_repeated_before
    return {name: (way, lambda way=way: tokens_first(way())) for name, way in ways.items()}


def eager_way(shape, query, key, value):
    query, key, value = (heads_first(values) for values in (query, key, value))
    scale = 1 / math.sqrt(shape.head_dim)
    mask = causal_mask(shape) if shape.causal else None

    def work():
        keys, values = key, value
        if shape.group > 1:
            keys, values = (t.repeat_interleave(shape.group, 1) for t in (key, value))
        scores = query @ keys.transpose(2, 3) * scale
        if mask is not None:
            scores = scores + mask
        weights = torch.softmax(scores, -1)
        return weights @ values, weights

    return work, lambda: tokens_first(work()[0])


class Encoder:
    """A model of the BERT family from its tensors, no padding."""

    def __init__(self, config, tensors):
        self.config = config
        self.heads = config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.tensors = {name: torch.from_numpy(values) for name, values in tensors.items()}

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.tensors[name + ".weight"], self.tensors[name + ".bias"], self.epsilon)

    def linear(self, x, name):
        return F.linear(x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def attend(self, query, key, value, kept):
        if kept is None:
            return F.scaled_dot_product_attention(query, key, value)
        weights = torch.softmax(query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5), -1)
        kept.append(weights)
        return weights @ value

    def run(self, ids, kept=None):
        """kept: a list for the weights of each layer, or None for fused attention."""
        table = self.tensors
        x = F.embedding(ids, table["embeddings.word_embeddings.weight"])
        x = x + table["embeddings.position_embeddings.weight"][:ids.shape[1]]
        x = x + table["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}."
            query, key, value = (self.split(self.linear(x, f"{at}attention.self.{name}"))
                                 for name in ("query", "key", "value"))
            seen = self.attend(query, key, value, kept).transpose(1, 2).reshape(x.shape)
            x = self.norm(x + self.linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            hidden = F.gelu(self.linear(x, at + "intermediate.dense"))
            x = self.norm(x + self.linear(hidden, at + "output.dense"), at + "output.LayerNorm")
        return x

    def fused_way(self, ids):
        tokens = torch.from_numpy(ids)
        return (lambda: self.run(tokens)), (lambda: self.run(tokens).numpy())

    def eager_way(self, ids):
        tokens = torch.from_numpy(ids)
        return (lambda: self.run(tokens, [])), (lambda: self.run(tokens, []).numpy())
