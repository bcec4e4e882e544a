#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, and checks, what the tests of GGUF tokenizers of the models bert and t5 compare with: llama.cpp's ids.

  make_gguf_golden.py --minilm TOKENIZER.JSON [--encoder build/bin/encode_lines] [--check]

Writes ../data/gguf_golden.json, or with --check compares with what is there. The texts are those of cuts_golden.json and
some more. bert: the vocabulary of minilm, with the keys of the normalizer in all ways. t5: a small vocabulary that
sentencepiece trains on the texts, with a map of its own, user-defined and control tokens, with its flags in all ways.
With --encoder, our program must give the same ids; bert with a text that has U+2581 inside a word is left out (for
llama.cpp, a piece that begins a word may stand there). Made with llama-cpp-python 0.3.36, gguf 0.19.0, sentencepiece 0.2.3.
"""
import argparse
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import llama_cpp
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from make_cuts_golden import PARTS, gguf_file, hash_of
from make_golden import DATA, keep, pack

GOLDEN = DATA / "gguf_golden.json"
SEED = 20261201
PIECES = 420
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
MARK = "\u2581"

# What the map of t5 knows: several strings that begin alike, some that vanish, one that becomes a space.
RULES = {"\ufb01": "fi", "\u2460": "1", "\u00c5": "A", "e\u0301": "\u00e9", "...": "\u2026", "..": ".", "\u3000": " ", "\u00a0": " ", "\u00ad": "",
         "\u200b": "", "\uff11": "1", "\uff12": "2", "\u0301": "", "\t": " ", "\n": " ", "\r": " ", "\u2028": " ", "HTML": "html", "\u4e16\u754c": "world", "\u0130": "i\u0307", "<p": "<q"}


def more_texts():
    source = random.Random(SEED)
    texts = ["x" * 150, "\u00e9" * 130, "play" * 60, "re" * 51 + "ing", "\ufb01ne \u2460 \u00c5", "a...b..c.d", "HTMLHTMHTML",
             "<extra_id_0>", "<extra_id_1> a<extra_id_0>b", "<extra", "<extra_id_0", "<p>", "<pad>", "</s> a</s>", "<unk>x", "  a   b  ", "\u3000a\u3000\u3000b\u3000",
             "\u2581", "a\u2581b", "\u2581\u2581a", " \u2581 ", "\u00ad", "\u200b\u200b ", "\U0001f600\U0001f600a\U0001f600", "[MASK] [mask]", "[CLS]a[SEP]", "##ing", "\u0130I\u0131i", "\u1e9e\u00df",
             "\U00011938\U00011935", "\u1c89\u1c8a", "\u2e43\u2e5d", "\u166d", "\U0001f1e9\u00a9\u00ae\u2122", "$+<=>^`|~", "\u00b4\u00a8\u02c7", "\u2b1b", "\u4e00\u3401\U00020001\U0002b821\U0002b921\uf901\u3007", "a\u0085b", "\x1ca\x1db"]
    for _ in range(120):
        texts.append("".join(source.choice(PARTS + ["Play", "ing ", "un", "\ufb01", "\u2460", "e\u0301", "..."]) for _ in range(source.randrange(2, 8))))
    return texts


def write_gguf(path, model, tokens, types, scores, fields):
    with gguf_file(path, model) as writer:
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_token_scores(scores)
        for key, value in fields.items():
            if isinstance(value, bool):
                writer.add_bool(f"tokenizer.ggml.{key}", value)
            elif isinstance(value, bytes):
                writer.add_array(f"tokenizer.ggml.{key}", value)
            else:
                writer.add_uint32(f"tokenizer.ggml.{key}", value)


def wordpiece_vocabulary(tokenizer_json):
    """(tokens, types) as a GGUF has them: a mark before what begins a word, none before what goes on with one."""
    vocabulary = json.loads(pathlib.Path(tokenizer_json).read_text())["model"]["vocab"]
    tokens, types = [], []
    for piece in sorted(vocabulary, key=vocabulary.get):
        special = piece.startswith("[") and piece.endswith("]")
        tokens.append(piece if special else piece[2:] if piece.startswith("##") else MARK + piece)
        types.append(CONTROL if special and "unused" not in piece else NORMAL)
    return tokens, types


def train(texts, folder):
    """A small model of sentencepiece, as {tokens, types, scores, map}."""
    rules = pathlib.Path(folder) / "rules.tsv"
    rules.write_text("".join(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n"
                             for source, target in RULES.items()))
    lines = [line for text in texts for line in text.replace("\0", "").splitlines() if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3), model_prefix=f"{folder}/small", vocab_size=PIECES, model_type="unigram",
        hard_vocab_limit=False, character_coverage=0.98, normalization_rule_tsv=str(rules), num_threads=1, pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, user_defined_symbols=["<extra_id_0>", "<extra_id_1>", "<p>"], minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto.FromString(pathlib.Path(f"{folder}/small.model").read_bytes())
    types = [int(piece.type) for piece in proto.pieces]  # the numbers are those of a GGUF
    types[-3] = UNUSED
    return {"tokens": [piece.piece for piece in proto.pieces], "types": types,
            "scores": [piece.score for piece in proto.pieces], "map": proto.normalizer_spec.precompiled_charsmap.hex()}


class Comparison:
    def __init__(self, encoder, texts):
        self.encoder, self.texts, self.good = encoder, texts, True

    def hashes(self, path, name):
        """llama.cpp's ids of the texts with a file, as hashes; compared with ours."""
        model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
        theirs = [model.tokenize(text.encode(), add_bos=True, special=True) for text in self.texts]
        model.close()
        if self.encoder:
            run = subprocess.run([self.encoder, path], input=pack(self.texts), capture_output=True, check=False)
            ours = [[int(token.split(",")[0]) for token in line.split()] for line in run.stdout.decode().split("\n")]
            left_out = [name.startswith("bert") and re.search(r"\w" + MARK, text) for text in self.texts]
            wrong = [i for i in range(len(self.texts)) if ours[i : i + 1] != [theirs[i]] and not left_out[i]]
            print(f"{name}: {len(wrong)} of {len(self.texts)} texts differ {run.stderr.decode().strip()}")
            for i in wrong[:4]:
                print(f"  text   {self.texts[i]!a}\n  ours   {ours[i : i + 1]}\n  theirs {theirs[i]}")
            self.good &= not wrong
        return "".join(map(hash_of, theirs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minilm", required=True)
    parser.add_argument("--encoder")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    more = more_texts()
    texts = json.loads((DATA / "cuts_golden.json").read_text())["texts"] + more
    comparison = Comparison(arguments.encoder, texts)
    result = {"texts": more, "bert": [], "t5": []}
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "small.gguf")
        tokens, types = wordpiece_vocabulary(arguments.minilm)
        for keys in ({}, {"normalizer.lowercase": False}, {"normalizer.strip_accents": False},
                     {"normalizer.lowercase": False, "normalizer.strip_accents": True}):
            write_gguf(path, "bert", tokens, types, [0.0] * len(tokens), keys)
            result["bert"].append({"keys": keys, "hashes": comparison.hashes(path, f"bert {keys}")})
        small = train(texts, folder)
        result["pieces"] = small
        for prefix, merge, mapped in itertools.product((False, True), repeat=3):
            keys = {"add_space_prefix": prefix, "remove_extra_whitespaces": merge}
            fields = keys | ({"precompiled_charsmap": bytes.fromhex(small["map"])} if mapped else {})
            write_gguf(path, "t5", small["tokens"], small["types"], small["scores"], fields)
            result["t5"].append({"keys": keys, "map": mapped, "hashes": comparison.hashes(path, f"t5 {keys} {mapped}")})
    content = json.dumps(result, ensure_ascii=True, indent=0) + "\n"
    comparison.good &= keep(GOLDEN, content, arguments.check)
    sys.exit(0 if comparison.good else 1)


if __name__ == "__main__":
    main()
