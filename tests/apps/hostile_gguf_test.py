#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GGUF file with one thing wrong gets one clear line from every command that opens it."""
import shutil, struct, tempfile, unittest
from pathlib import Path

from program import run

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U8, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10


def u32(number):
    return struct.pack("<I", number)


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def array(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


class Gguf:
    """The parts of a file, each of which may be made wrong."""

    def __init__(self, data):
        self.version, tensors, values = struct.unpack("<IQQ", data[4:24])
        self.data, self.at, self.alignment = data, 24, 32
        self.more_tensors = self.more_values = 0  # as the header says, beside those that are there
        self.values, self.tensors = {}, {}
        for _ in range(values):
            key, kind = self.string(), self.number("I")
            self.values[key] = [kind, self.value(kind)]
        for _ in range(tensors):
            name = self.string()
            sizes = [self.number("q") for _ in range(self.number("I"))]
            self.tensors[name] = [sizes, self.number("I"), self.number("Q")]
        self.data = data[(self.at + 31) // 32 * 32:]

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, kind):
        return struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))[0]

    def string(self):
        return self.take(self.number("Q")).decode()

    def value(self, kind):
        begin = self.at
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.value(element)
        else:
            self.take(SIZES[kind])
        return self.data[begin:self.at]

    def set(self, key, kind, content):
        self.values[key] = [kind, content]

    def content(self):
        text = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors) + self.more_tensors, len(self.values) + self.more_values)
        for key, (kind, content) in self.values.items():
            text += string(key) + u32(kind) + content
        for name, (sizes, kind, offset) in self.tensors.items():
            text += string(name) + u32(len(sizes)) + struct.pack(f"<{len(sizes)}q", *sizes) + u32(kind) + struct.pack("<Q", offset)
        return text + bytes(-len(text) % self.alignment) + self.data


def small():
    """A llama of 48 rows with a tokenizer of as many pieces; piece 0 is a control token."""
    source = Path(__file__).resolve().parent.parent / "model/data/decoders/llama.gguf"
    file = Gguf(source.read_bytes())
    pieces = ["<|end|>", *"abcdefghijklmnopqrstuvwxyz", "\u0120", *"!?.,;:0123456789-+*/"]
    file.set("tokenizer.ggml.model", STRING, string("gpt2"))
    file.set("tokenizer.ggml.pre", STRING, string("gpt-2"))
    file.set("tokenizer.ggml.tokens", ARRAY, array(STRING, [string(piece) for piece in pieces]))
    file.set("tokenizer.ggml.token_type", ARRAY, array(5, [u32(3 if piece == "<|end|>" else 1) for piece in pieces]))
    file.set("tokenizer.ggml.merges", ARRAY, array(STRING, []))
    return file


class HostileGguf(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, content, name="m.gguf"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.content())
        return path

    def commands(self, path):
        trace = str(self.folder / "t.safetensors")
        return (("inspect", str(path)), ("attend", "the cat", "--model", str(path)), ("generate", "the cat", "--model", str(path), "--max-tokens", "3"),
                ("record", "the cat", "--model", str(path), "--output", trace))

    def refused(self, path, words, code=1, commands=None):
        for command in commands or self.commands(path):
            done = run(*command, timeout=60)
            self.assertEqual(done.returncode, code, (command, done.err))
            lines = [line for line in done.err.splitlines() if not line.startswith("clearhead: model ")]
            self.assertEqual(len(lines), 1, (command, done.err))
            for word in (*words, "expected", "found"):
                self.assertIn(word, lines[0], command)
            self.assertFalse((self.folder / "t.safetensors").exists())

    def test_the_file_as_it_should_be(self):
        for command in self.commands(self.write(small())):
            done = run(*command)
            self.assertEqual(done.returncode, 0, (command, done.err))

    def changed(self, change):
        file = small()
        change(file)
        return file

    def test_headers(self):
        def count(file): file.more_tensors = (1 << 63) - 30
        def values(file): file.more_values = (1 << 63) - 30
        def big(file): file.version = 3 << 24
        def nested(file): file.set("x", ARRAY, array(ARRAY, [array(4, [u32(1)])]))
        def beyond(file): file.set("x", STRING, struct.pack("<Q", 1 << 29))
        def flag(file): file.set("x", BOOL, b"\2")
        for change, words in ((count, ["room"]), (values, ["room"]), (big, ["big-endian"]), (nested, ["array of arrays"]),
                              (beyond, ["cut off"]), (flag, ["bool"])):
            self.refused(self.write(self.changed(change)), words)
        for alignment in (0, 3, 4, 1 << 20, (1 << 32) - 1):
            self.refused(self.write(self.changed(lambda file: file.set("general.alignment", U32, u32(alignment)))), ["general.alignment", str(alignment)])
        whole = small().content()
        self.refused(self.write(whole.replace(string("tokenizer.ggml.merges"), string("tokenizer.ggml.tokens"))), ["each key once"])
        self.refused(self.write(whole.replace(string("blk.1.attn_k.weight"), string("blk.1.attn_v.weight"))), ["each name once"])
        for size in (0, 3, 23, 100, len(whole) // 2, len(whole) - 1):
            self.refused(self.write(whole[:size]), [])

    def test_tensors(self):
        name = "blk.0.attn_k.weight"
        for sizes, word in (([-1, 12], "-1"), ([1 << 62, 1 << 62], "64 bits"), ([24, 13], "offset"), ([1] * 5, "axes")):
            self.refused(self.write(self.changed(lambda file: file.tensors[name].__setitem__(0, sizes))), [word])
        for kind in (4, 5, 31, 32, 33, 36, 37, 38, 43, 10, 30 << 8):
            self.refused(self.write(self.changed(lambda file: file.tensors[name].__setitem__(1, kind))), [name, "types"])
        self.refused(self.write(self.changed(lambda file: file.tensors[name].__setitem__(1, 2))), ["whole blocks"])
        for offset in (0, 16352, 16321, (1 << 64) - 32):
            self.refused(self.write(self.changed(lambda file: file.tensors[name].__setitem__(2, offset))), [name, "offset"])
        opening = [command for command in self.commands(self.folder / "m.gguf") if command[0] != "inspect"]
        missing = self.changed(lambda file: file.tensors.pop("output_norm.weight"))  # the last one
        missing.data = missing.data[:41856]
        self.refused(self.write(missing), ["output_norm.weight"], commands=opening)

    def test_settings(self):
        opening = [command for command in self.commands(self.folder / "m.gguf") if command[0] != "inspect"]
        for key, kind, content, words in (
                ("attention.head_count", U32, u32(0), ["head_count"]), ("attention.head_count_kv", U32, u32(3), ["num_kv_heads"]),
                ("attention.head_count_kv", U32, u32(0), ["num_kv_heads"]), ("block_count", U32, u32(10 ** 9), ["num_layers"]),
                ("block_count", U64, struct.pack("<Q", (1 << 64) - 1), ["llama.block_count"]), ("block_count", F32, struct.pack("<f", 2), ["llama.block_count"]),
                ("embedding_length", STRING, string("24"), ["llama.embedding_length"]), ("attention.layer_norm_rms_epsilon", F32, struct.pack("<f", float("nan")), ["finite"]),
                ("attention.layer_norm_rms_epsilon", ARRAY, array(U8, [b"\0"] * 4), ["layer_norm_rms_epsilon"])):
            path = self.write(self.changed(lambda file: file.set("llama." + key, kind, content)))
            self.refused(path, words, commands=opening)
            shown = run("inspect", str(path), timeout=60)  # what is in the file, and why it cannot be run
            self.assertEqual(shown.returncode, 0, shown.err)
            self.assertIn(words[0], shown.out + shown.err)
        for key, content, words in (("scores", array(U8, [b"\0"] * 48), ["an array of f32"]), ("token_type", array(F32, [bytes(4)] * 48), ["integers"]),
                                    ("tokens", array(U8, [b"a"] * 48), ["an array of strings"]), ("merges", array(STRING, [string("a zz")]), ["zz"]),
                                    ("merges", array(U32, [u32(1)]), ["an array of strings"])):
            self.refused(self.write(self.changed(lambda file: file.set("tokenizer.ggml." + key, ARRAY, content))), words, commands=opening)
        self.refused(self.write(self.changed(lambda file: file.set("tokenizer.ggml.model", U32, u32(1)))), ["tokenizer.ggml.model"], commands=opening)

    def test_more_pieces_than_rows(self):
        def more(file):
            pieces = ["<|end|>", *"abcdefghijklmnopqrsuvwxyz", "\u0120", *"!?.,;:0123456789-+*/", "'", "t"]
            file.set("tokenizer.ggml.tokens", ARRAY, array(STRING, [string(piece) for piece in pieces]))
            file.set("tokenizer.ggml.token_type", ARRAY, array(5, [u32(1)] * len(pieces)))
        opening = [command for command in self.commands(self.folder / "m.gguf") if command[0] != "inspect"]
        self.refused(self.write(self.changed(more)), ["48"], code=2, commands=opening)

    def test_prompts(self):
        path = str(self.write(small()))
        generate = lambda text: [("generate", text, "--model", path)]
        self.refused(path, ["at least one token"], code=2, commands=generate(""))
        self.refused(path, ["fewer than 64"], code=2, commands=generate("a" * 64))
        self.refused(path, ["at least one token"], code=2, commands=generate("\u4f60"))
        done = run("generate", "<|end|><|end|>", "--model", path, "--max-tokens", "3", "--attend")
        self.assertEqual(done.returncode, 0, done.err)

    def test_parts(self):
        def part(number, count, tensors):
            file = small()
            file.set("split.no", 2, struct.pack("<H", number))
            file.set("split.count", 2, struct.pack("<H", count))
            file.set("split.tensors.count", 5, u32(tensors))
            return file
        first = self.write(part(0, 2, 20), "m-00001-of-00002.gguf")
        self.refused(first, ["m-00002-of-00002.gguf"], commands=self.commands(first)[1:])
        second = part(1, 3, 20)
        self.write(second, "m-00002-of-00002.gguf")
        self.refused(first, ["part 2 of 2"])
        self.write(part(1, 2, 20), "m-00002-of-00002.gguf")
        self.refused(first, ["in two"])
        self.refused(self.folder / "m-00002-of-00002.gguf", ["first part"])
        self.refused(self.write(part(0, 2, 20), "other.gguf"), ["-00001-of-00002.gguf"])
        self.refused(self.write(part(0, 1, 21), "one.gguf"), ["21 tensors"])


if __name__ == "__main__":
    unittest.main()
