#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Clearhead and its peers in turns, on the same inputs, with the same number of threads, their answers compared
before the clock starts.

    measure.py CLEARHEAD.json RESULTS.json [--quick]

CLEARHEAD.json is what `clearhead bench --json` printed; its shapes are measured. Needs the environment that environment.sh
makes, and the models minilm and smollm2-135m-instruct.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
from safetensors.numpy import load_file

import decoder
import growth
import peer_llama
import peer_onnx
import peer_openvino
import peer_tokenizers
import peer_torch
import samples
from ours import PROGRAM, Clearhead
from shape import shape_of
from turns import QUICK, Effort, quickest, take_turns, worker

MODEL = "minilm"
TOLERANCE = {"attention": 2e-5, "attention in BF16": 5e-2, "encoder": 1e-4}
PROFILE_SECONDS = 0.8
LARGEST_EAGER = 2048  # keys; the matrix of weights grows with their square


def say(text):
    print(text, file=sys.stderr, flush=True)


def compare(what, want, answers):
    """The largest difference of each answer from ours; stops at one that is too large."""
    differences = {name: float(numpy.abs(answer() - want).max()) for name, answer in answers.items()}
    for name, difference in differences.items():
        if not difference <= TOLERANCE[what]:
            raise SystemExit(f"{what}: {name} differs from clearhead by {difference}, more than {TOLERANCE[what]}")
    return differences


class Contest:
    """One problem: the quickest way of each peer, their answers, and the turns."""

    def __init__(self, what, shape, want, ours):
        self.what, self.shape, self.want = what, shape, want
        self.workers, self.answers, self.ways, self.left_out = dict(ours), {}, {}, {}

    def add(self, name, ways, effort, left_out=None):
        """ways: name -> (work, answer)."""
        self.left_out.update({f"{name}: {way}": why for way, why in (left_out or {}).items()})
        if not ways:
            return
        best = next(iter(ways))
        if len(ways) > 1:
            best = quickest({way: work for way, (work, _) in ways.items()}, effort.turn / 4)
        work, self.answers[name] = ways[best]
        self.workers[name], self.ways[name] = worker(work), best

    def row(self, effort, **more):
        differences = compare(self.what, self.want, self.answers)
        results = take_turns(self.workers, effort)
        say(f"  {self.what} {self.shape}: " +
            ", ".join(f"{name} {1e3 * result['median']:.3f} ms" for name, result in results.items()))
        return {"shape": self.shape, **more, "results": results, "ways": self.ways, "left_out": self.left_out,
                "differences": differences}


def attention_row(ours, text, threads, effort):
    shape = shape_of(text)
    inputs = shape.inputs()
    want = ours.prepare_attention(shape, *inputs)
    evidence = {"clearhead": "none", "clearhead rows": "rows", "clearhead all": "all"}
    workers = {name: (lambda turn, wanted=wanted: ours.turn(wanted, turn)) for name, wanted in evidence.items()}
    contest = Contest("attention", text, want, workers)
    contest.add("PyTorch SDPA", peer_torch.fused_ways(shape, *inputs), effort)
    ways, left_out = peer_onnx.attention_ways(shape, *inputs, threads)
    contest.add("ONNX Runtime", ways, effort, left_out)
    contest.add("OpenVINO", peer_openvino.attention_ways(shape, *inputs, threads), effort)
    if shape.key_len <= LARGEST_EAGER:
        contest.add("PyTorch eager", {"eager": peer_torch.eager_way(shape, *inputs)}, effort)
    row = contest.row(effort, operations=shape.operations)
    return {**row, "profile": [] if effort is QUICK else samples.profile(ours, PROFILE_SECONDS)}


def bf16_row(ours, text, effort):
    shape = shape_of(text)
    inputs = shape.inputs()
    want = ours.prepare_attention(shape, *inputs, precision="bf16")
    contest = Contest("attention in BF16", text, want, {"clearhead": lambda turn: ours.turn("none", turn)})
    contest.add("PyTorch SDPA", peer_torch.fused_ways(shape, *inputs, peer_torch.torch.bfloat16), effort)
    return contest.row(effort, operations=shape.operations)


def place_of(name):
    listing = subprocess.run([PROGRAM, "models", "--json"], capture_output=True, check=True, text=True).stdout
    place = next(model["path"] for model in json.loads(listing)["models"] if model["name"] == name)
    if not place:
        raise SystemExit(f"the model {name} is missing; fetch it with: clearhead fetch {name}")
    return place


def model_files():
    folder = place_of(MODEL)
    config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    return config, load_file(pathlib.Path(folder) / "model.safetensors")


def encoder_row(ours, files, text, threads, effort):
    batch, length = map(int, text.split("x"))
    config, tensors = files
    ids = numpy.random.default_rng(1).integers(1000, config["vocab_size"], (batch, length), numpy.int64)
    want = ours.prepare_encoder(MODEL, ids)
    contest = Contest("encoder", text, want, {"clearhead": lambda turn: ours.turn("none", turn)})
    model = peer_torch.Encoder(config, tensors)
    contest.add("PyTorch SDPA", {"sdpa": model.fused_way(ids)}, effort)
    contest.add("PyTorch eager", {"eager": model.eager_way(ids)}, effort)
    contest.add("ONNX Runtime", peer_onnx.encoder_ways(config, tensors, ids, threads), effort)
    graph = peer_onnx.encoder_model(config, tensors, ids)
    contest.add("OpenVINO", peer_openvino.encoder_ways(graph, ids, threads), effort)
    return contest.row(effort, tokens=batch * length)


def busy_processors(seconds):
    """How many processors work while we wait."""
    def counts():
        values = list(map(int, pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:]))
        return sum(values), values[3] + values[4]
    all_before, idle_before = counts()
    time.sleep(seconds)
    all_after, idle_after = counts()
    return os.cpu_count() * (1 - (idle_after - idle_before) / max(1, all_after - all_before))


def shapes_in(bench, name):
    return list(dict.fromkeys(row["shape"] for row in bench["rows"] if row["name"] == name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clearhead", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="one round, small sizes: whether it works, not how fast")
    flags = parser.parse_args()
    bench = json.loads(flags.clearhead.read_text(encoding="utf-8"))
    threads = max(row["threads"] for row in bench["rows"])
    effort = QUICK if flags.quick else Effort()
    peer_torch.set_threads(threads)
    ours = Clearhead(threads)
    busy = busy_processors(1.0)
    if busy > 0.3:
        say(f"  other work keeps {busy:.1f} processors busy: the numbers will say little")
    results = {"date": datetime.date.today().isoformat(), "threads": threads, "busy": busy, "bench": bench,
               "versions": [peer.version for peer in (peer_torch, peer_onnx, peer_openvino, peer_tokenizers, peer_llama)]}
    shapes = shapes_in(bench, "attention")
    results["attention"] = [attention_row(ours, text, threads, effort) for text in shapes]
    if bench["peaks"][0]["bf16_gflops"]:
        results["attention_bf16"] = [bf16_row(ours, text, effort) for text in shapes]
    files = model_files()
    results["encoder"] = [encoder_row(ours, files, text, threads, effort) for text in shapes_in(bench, "encoder")]
    results["tokenizers"] = peer_tokenizers.rows(ours, effort, flags.quick, say)
    with tempfile.TemporaryDirectory() as folder:
        has_bf16 = bool(bench["peaks"][0]["bf16_gflops"])
        results["decoder"] = decoder.measure(ours, place_of(decoder.MODEL), threads, effort, folder, has_bf16, say)
    results["growth"] = growth.rows(ours, threads, flags.quick, say)
    ours.close()
    flags.results.parent.mkdir(parents=True, exist_ok=True)
    flags.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OPENVINO_TELEMETRY", "0")
    main()
