#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How time and memory grow with the length: causal attention of 9 heads over 3 of 64 dimensions.

    growth.py THREADS WAY LENGTH...    (a process of its own: bytes that PyTorch needs, a JSON list)
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys

import peer_torch
from shape import shape_of
from turns import QUICK, Effort, take_turns, worker

LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
EAGER_MATRICES = 4  # of length x length that eager attention keeps at its height


def shape_at(length):
    return shape_of(f"1x9/3 {length} 64 causal")


def available_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def eager_fits(shape):
    """Whether the matrices of eager attention fit into a third of the memory that is free."""
    return EAGER_MATRICES * 4 * shape.heads * shape.query_len * shape.key_len < available_bytes() / 3


def status_bytes(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def growth_during(work):
    """As measure::growth_during of the program."""
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status_bytes("VmRSS")
    work()
    return max(0, status_bytes("VmHWM") - before)


def way_at(way, shape):
    inputs = shape.inputs()
    if way == "eager":
        return peer_torch.eager_way(shape, *inputs)[0]
    return peer_torch.fused_ways(shape, *inputs)["sdpa"][0]


def peer_memory(threads, way, lengths):
    """Bytes at each length, in a process whose memory nothing else has used before."""
    command = [sys.executable, __file__, str(threads), way, *map(str, lengths)]
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout)


def time_at(ours, shape, effort):
    ours.prepare_attention(shape, *shape.inputs())
    workers = {"clearhead": lambda turn: ours.turn("none", turn),
               "clearhead, all statistics": lambda turn: ours.turn("all", turn),
               "PyTorch SDPA": worker(way_at("sdpa", shape))}
    if eager_fits(shape):
        workers["PyTorch eager"] = worker(way_at("eager", shape))
    memory = {"clearhead": ours.working_bytes("none"), "clearhead, all statistics": ours.working_bytes("all")}
    return {name: result["median"] for name, result in take_turns(workers, effort).items()}, memory


def rows(ours, threads, quick, say):
    lengths = LENGTHS[:3] if quick else LENGTHS
    found = []
    for length in lengths:
        effort = QUICK if quick or length >= 8192 else Effort(rounds=5, seconds=1.0, turn=0.01)
        seconds, memory = time_at(ours, shape_at(length), effort)
        found.append({"length": length, "seconds": seconds, "bytes": memory})
        say(f"  causal {length}: " + ", ".join(f"{name} {1e3 * value:.3f} ms" for name, value in seconds.items()))
    for name, way in (("PyTorch SDPA", "sdpa"), ("PyTorch eager", "eager")):
        measured = [row for row in found if name in row["seconds"]]
        sizes = peer_memory(threads, way, [row["length"] for row in measured])
        for row, size in zip(measured, sizes):
            row["bytes"][name] = size
    return found


def working_bytes(way, shape):
    """Beyond inputs and output, which PyTorch makes anew in each run."""
    output = 4 * shape.batch * shape.query_len * shape.heads * shape.head_dim
    return max(0, growth_during(way_at(way, shape)) - output)


def main():
    peer_torch.set_threads(int(sys.argv[1]))
    way_at(sys.argv[2], shape_at(16))()  # what the first run of all sets up
    print(json.dumps([working_bytes(sys.argv[2], shape_at(int(length))) for length in sys.argv[3:]]))


if __name__ == "__main__":
    main()
