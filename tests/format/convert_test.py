#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/convert_multilingual_e5.py on a small file made here."""
import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from python_with_numpy import python_with_numpy  # noqa: E402

SCRIPT = ROOT / "scripts" / "convert_multilingual_e5.py"


def tiny_e5():
    """A file of the kind that convert_multilingual_e5.py reads: one layer, d_model 32, 4 pieces, 5 rows."""
    wide, d_ff, rows, positions = 32, 64, 5, 8
    pieces = [b"<s>", b"<pad>", b"</s>", b"<unk>"]
    block = struct.pack("<e", 0.5) + bytes([0x82, 0xFF] + [0x88] * 14)

    def matrix(count):
        return block * (count // 32)

    def floats(count):
        return struct.pack(f"<{count}f", *[0.25] * count)

    tensors = {"emb.word": matrix(rows * wide), "emb.pos": floats(positions * wide), "emb.type": floats(2 * wide),
               "emb.ln.w": floats(wide), "emb.ln.b": floats(wide)}
    for name, out, inner in (("q", wide, wide), ("k", wide, wide), ("v", wide, wide), ("ao", wide, wide),
                             ("fi", d_ff, wide), ("fo", wide, d_ff)):
        tensors[f"l0.{name}.w"], tensors[f"l0.{name}.b"] = matrix(out * inner), floats(out)
    for name in ("aln", "oln"):
        tensors[f"l0.{name}.w"], tensors[f"l0.{name}.b"] = floats(wide), floats(wide)

    starts = [sum(map(len, pieces[:i])) for i in range(5)]
    head = b"E5S1" + struct.pack("<I7ifi", 1, wide, 1, 4, d_ff, rows, positions, 2, 1e-12, 0)
    head += struct.pack("<5iQ", 4, 0, 2, 1, 3, starts[4]) + struct.pack("<5I4f", *starts, 0, 0, 0, -1)
    head += b"".join(pieces) + struct.pack("<iI", 0, 0) + struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 1 + 4 + 16 for name in tensors)
    for name, content in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, at, len(content))
        at += len(content)
    return head + b"".join(tensors.values())


class ConvertTest(unittest.TestCase):
    def convert(self, content):
        python = python_with_numpy()
        if python is None:
            self.skipTest("no Python with numpy")
        folder = tempfile.TemporaryDirectory(prefix="clearhead-convert-")
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name) / "out"
        source = Path(folder.name) / "tiny.bin"
        source.write_bytes(content)
        return subprocess.run([python, str(SCRIPT), str(source), str(self.out)], capture_output=True, text=True)

    def test_lays_a_model_out_in_the_usual_way(self):
        run = self.convert(tiny_e5())
        self.assertEqual(run.returncode, 0, run.stderr)
        config = json.loads((self.out / "config.json").read_text("utf-8"))
        names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")
        self.assertEqual(tuple(config[name] for name in names), (32, 1, 4, 5, 8))
        self.assertAlmostEqual(config["layer_norm_eps"], 1e-12, delta=1e-18)
        tokenizer = json.loads((self.out / "tokenizer.json").read_text("utf-8"))
        self.assertEqual([piece for piece, _ in tokenizer["model"]["vocab"]], ["<s>", "<pad>", "</s>", "<unk>"])
        self.assertEqual(tokenizer["model"]["unk_id"], 3)
        self.assertEqual([token["id"] for token in tokenizer["added_tokens"]], [0, 1, 2, 3])

    def test_turns_blocks_into_numbers(self):
        self.convert(tiny_e5())
        content = (self.out / "model.safetensors").read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + length])
        self.assertEqual(len(header), 5 + 12 + 4)
        begin, end = header["encoder.layer.0.intermediate.dense.weight"]["data_offsets"]
        self.assertEqual(header["encoder.layer.0.intermediate.dense.weight"]["shape"], [64, 32])
        row = struct.unpack("<32e", content[8 + length + begin:8 + length + end][:64])
        # bytes 0x82 0xFF 0x88...: low nibbles 2, 15, 8... are values 0-15, high nibbles 8, 15, 8... values 16-31
        self.assertEqual(row, (-3.0, 3.5, *[0.0] * 14, 0.0, 3.5, *[0.0] * 14))

    def test_refuses_other_files(self):
        for content, text in ((b"GGUF", "expected a file that begins with E5S1"), (b"", "found the end of the file"),
                              (tiny_e5()[:60], "found the end of the file")):
            run = self.convert(content)
            self.assertEqual(run.returncode, 1)
            self.assertIn(text, run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
