# SPDX-License-Identifier: Apache-2.0
"""The shapes of `clearhead bench`, read from its own rows."""
import dataclasses
import re

PATTERN = re.compile(r"(\d+)x(\d+)(?:/(\d+))? (\d+)(?: of (\d+))? (\d+)( causal)?")


@dataclasses.dataclass(frozen=True)
class Shape:
    text: str
    batch: int
    heads: int
    kv_heads: int
    query_len: int
    key_len: int
    head_dim: int
    causal: bool

    @property
    def group(self):
        return self.heads // self.kv_heads

    @property
    def operations(self):
        every = 4 * self.batch * self.heads * self.query_len * self.key_len * self.head_dim
        return every // 2 if self.causal else every

    def inputs(self, seed=1):
        """Query, key and value [batch, length, heads, head_dim], normal random numbers."""
        import numpy  # the page is written without it

        generator = numpy.random.default_rng(seed)
        queries = (self.batch, self.query_len, self.heads, self.head_dim)
        keys = (self.batch, self.key_len, self.kv_heads, self.head_dim)
        return [generator.standard_normal(sizes, dtype=numpy.float32) for sizes in (queries, keys, keys)]


def shape_of(text):
    batch, heads, kv_heads, query_len, key_len, head_dim, causal = PATTERN.fullmatch(text).groups()
    heads, query_len = int(heads), int(query_len)
    return Shape(text, int(batch), heads, int(kv_heads or heads), query_len, int(key_len or query_len), int(head_dim),
                 causal is not None)
