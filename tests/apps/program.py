# SPDX-License-Identifier: Apache-2.0
"""Run the program as a user does."""
import json, os, shutil, struct, subprocess
from pathlib import Path

PROGRAM = os.environ["CLEARHEAD"]
CAT = "The cat sat on the mat"
BOOK = "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002"


def run(*words, stdin=b"", stdout=subprocess.PIPE, env=None, cwd=None, timeout=120):
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "COLORTERM")}
    environment.update({"LC_ALL": "C.UTF-8", **(env or {})})
    done = subprocess.run([PROGRAM, *words], input=stdin, stdout=stdout, stderr=subprocess.PIPE, env=environment, cwd=cwd, timeout=timeout)
    done.out = (done.stdout or b"").decode("utf-8")
    done.err = done.stderr.decode("utf-8")
    return done


def document(*words, **more):
    """The JSON that a command prints. NaN and infinity, which JSON has not, are errors."""
    done = run(*words, "--json", **more)
    assert done.returncode == 0, done.err
    def refuse(constant): raise ValueError(constant)
    return json.loads(done.out, parse_constant=refuse)


def write_tensors(path, **tensors):
    """A safetensors file of floats; tensors: name -> (shape, values)."""
    header, body = {}, b""
    for name, (shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def small_decoder(folder, name, stranger=None):
    """A small model of tests/model/data/decoders with a tokenizer of characters, put into folder. stranger: the name of a tensor that it
    has beside its own."""
    vocabulary = {character: i for i, character in enumerate("?\u0120abcdefghijklmnopqrstuvwxyz")}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": level,
                 "post_processor": None, "decoder": level,
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                           "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": []}}
    source = Path(__file__).resolve().parents[1] / "model/data/decoders" / name
    shutil.copy(source / "config.json", folder)
    (Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    data = (source / "model.safetensors").read_bytes()
    if stranger:
        length, = struct.unpack("<Q", data[:8])
        header, body = json.loads(data[8:8 + length]), data[8 + length:] + bytes(4)
        header[stranger] = {"dtype": "F32", "shape": [1], "data_offsets": [len(body) - 4, len(body)]}
        text = json.dumps(header).encode()
        data = struct.pack("<Q", len(text)) + text + body
    (Path(folder) / "model.safetensors").write_bytes(data)
    return str(folder)


class Tensors:
    """A safetensors file, read by its format alone."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        length, = struct.unpack("<Q", data[:8])
        self.header, self.body = json.loads(data[8:8 + length]), data[8 + length:]
        self.metadata = self.header.pop("__metadata__", {})

    def value(self, name, index):
        entry = self.header[name]
        assert entry["dtype"] == "F32"
        place = 0
        for axis, size in enumerate(entry["shape"]):
            place = place * size + (index[axis] if axis < len(index) else 0)
        begin = entry["data_offsets"][0] + 4 * place
        return struct.unpack("<f", self.body[begin:begin + 4])[0]
