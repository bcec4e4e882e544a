#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a person waits for `clearhead attend`, and how much memory stays in use.

    scripts/bench_attend.py [--runs 9] [--model minilm]

A sentence of 12 tokens, the model file in the page cache. Prints the median and the range of the time from start to exit,
and the largest resident memory of any run, also as a multiple of the size of the model file.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build" / "bin" / "clearhead"
SENTENCE = "The tired cat slept all day on the mat."  # 9 words, the full stop, [CLS] and [SEP]


def model_file(model):
    home = os.environ.get("CLEARHEAD_HOME")
    if not home:
        home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "clearhead")
    files = sorted(pathlib.Path(home).rglob(f"{model}/*.safetensors"))
    if not files:
        sys.exit(f"no model file of {model} below {home}; fetch it with: clearhead fetch {model}")
    return files[0]


def run_once(command):
    """Seconds from start to exit, and the largest resident memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode}: {' '.join(map(str, command))}")
    return seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--model", default="minilm")
    arguments = parser.parse_args()
    file = model_file(arguments.model)
    size = len(file.read_bytes())  # and so it is in the page cache
    command = [PROGRAM, "attend", "--model", arguments.model, SENTENCE]
    run_once(command)
    seconds, resident = zip(*(run_once(command) for _ in range(arguments.runs)))
    print(f"attend, 12 tokens, {arguments.model}: median {statistics.median(seconds):.3f} s "
          f"({min(seconds):.3f} to {max(seconds):.3f} in {arguments.runs} runs)")
    print(f"largest resident memory: {max(resident) / 1e6:.1f} MB, {max(resident) / size:.2f} times the model file "
          f"({size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
