# SPDX-License-Identifier: Apache-2.0
"""Run the program as a user does."""
import json, os, struct, subprocess
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
