# SPDX-License-Identifier: Apache-2.0
"""Decoders beside llama.cpp: a prompt, decoding, the first token and memory."""
import pathlib
import statistics
import subprocess
import sys
import time

import numpy

import convert_bf16
import peer_llama
from ours import PROGRAM
from turns import take_turns, worker

MODEL = "smollm2-135m-instruct"
SHAPES = ["prompt 512", "prompt 2048", "decode 128"]
DECODED = 16                             # tokens, measure::kDecodedTokens
TOLERANCE = {"Q4_1": 0.15, "BF16": 0.05}  # of the standard deviation of the logits, root mean square
ROUNDS = 5
PROMPT = "The capital of France is"


def difference(want, found):
    """Root mean square of the difference, as a part of the standard deviation of what is wanted."""
    return float(numpy.sqrt(((want - found) ** 2).mean()) / want.std())


class Files:
    """The file that people have, and the same model in bfloat16 beside it for as long as this is measured."""

    def __init__(self, path, folder):
        self.paths = {"Q4_1": pathlib.Path(path), "BF16": pathlib.Path(folder) / "smollm2-bf16.gguf"}
        convert_bf16.convert(self.paths["Q4_1"], self.paths["BF16"])


def row(ours, files, stored, text, threads, effort, has_bf16):
    """One shape of one file: ours in float and, of a prompt, in bfloat16, beside llama.cpp."""
    what, context = text.split()
    context, decodes = int(context), what == "decode"
    ids = numpy.random.default_rng(1).integers(1000, 40000, context + (DECODED if decodes else 0), numpy.int64)
    path = files.paths[stored]
    want = ours.prepare_decoder(path, text, ids)
    peer = peer_llama.Decoder(path, ids, context, threads)
    work = peer.decode if decodes else peer.read_prompt
    work()
    apart = difference(want, peer.logits())
    if not apart <= TOLERANCE[stored]:
        raise SystemExit(f"{stored} {text}: llama.cpp differs from clearhead by {apart}, more than {TOLERANCE[stored]}")
    workers = {"clearhead": lambda turn: ours.turn("none", turn), "llama.cpp": worker(work)}
    if decodes:
        workers["clearhead looks"] = lambda turn: ours.turn("looks", turn)
    elif has_bf16:
        rounded = type(ours)(threads)
        apart_rounded = difference(want, rounded.prepare_decoder(path, text, ids, "bf16"))
        workers["clearhead bf16"] = lambda turn: rounded.turn("none", turn)
    results = take_turns(workers, effort)
    if not decodes and has_bf16:
        rounded.close()
    return {"stored": stored, "shape": text, "tokens": DECODED if decodes else context, "results": results,
            "difference": apart, "difference_bf16": apart_rounded if not decodes and has_bf16 else None}


def first_byte(*arguments):
    """Seconds to the first byte of output of one process."""
    begin = time.perf_counter()
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.read(1)
    first = time.perf_counter() - begin
    process.stdout.read()
    if process.wait() != 0:
        raise SystemExit(f"clearhead {arguments} ended with {process.returncode}")
    return first


# A child counts the memory of whoever it was forked from, so somebody small must start it.
LAUNCHER = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"""


def peak(*arguments):
    """Largest resident memory of one process, in bytes."""
    return int(subprocess.run([sys.executable, "-c", LAUNCHER, PROGRAM, *map(str, arguments)], check=True,
                              stdout=subprocess.PIPE).stdout)


def process_rows(files, threads, folder):
    """Start to first token of a short prompt, and resident memory over the size of the file at 2048 tokens."""
    path = files.paths["Q4_1"]
    first = [first_byte("generate", PROMPT, "--model", path, "--max-tokens", 1, "--threads", threads)
             for _ in range(ROUNDS)]
    text = pathlib.Path(folder) / "prompt.txt"
    text.write_text("The cat sat on the mat and looked at us. " * 186, encoding="utf-8")
    memory = {}
    for cache in ("float", "bf16"):
        arguments = ("generate", "--file", text, "--model", path, "--max-tokens", 1, "--cache", cache, "--threads", threads)
        memory[cache] = peak(*arguments) - path.stat().st_size
    return {"first_token_seconds": statistics.median(first), "memory_over_file": memory}


def measure(ours, path, threads, effort, folder, has_bf16, say):
    files = Files(path, folder)
    rows = []
    for stored in files.paths:
        for text in SHAPES:
            rows.append(row(ours, files, stored, text, threads, effort, has_bf16))
            say(f"  decoder {stored} {text}: " + ", ".join(
                f"{name} {rows[-1]['tokens'] / result['median']:.0f} tokens/s" for name, result in rows[-1]["results"].items()))
    return {"rows": rows, **process_rows(files, threads, folder)}
