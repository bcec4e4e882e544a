# SPDX-License-Identifier: Apache-2.0
"""Clearhead itself, as a process that lives as long as the measurement and takes turns (clearhead bench --turns)."""
import json
import pathlib
import subprocess
import tempfile

import numpy
from safetensors.numpy import load_file, save_file

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/bin/clearhead"


class Clearhead:
    name = "clearhead"

    def __init__(self, threads):
        self.folder = tempfile.TemporaryDirectory()
        command = [PROGRAM, "bench", "--turns", "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"clearhead bench --turns ended at {command}")
        return json.loads(answer)

    def prepare(self, what, inputs, output, **more):
        """Hands inputs over; returns the output of a first run."""
        files = [f"{self.folder.name}/{name}.safetensors" for name in ("inputs", "outputs")]
        save_file({name: numpy.ascontiguousarray(values) for name, values in inputs.items()}, files[0])
        self.ask(prepare=what, inputs=files[0], outputs=files[1], **more)
        return load_file(files[1])[output]

    def prepare_attention(self, shape, query, key, value, precision="f32"):
        inputs = {"query": query, "key": key, "value": value}
        return self.prepare("attention", inputs, "head_output", shape=shape.text, precision=precision)

    def prepare_encoder(self, model, ids):
        return self.prepare("encoder", {"ids": ids}, "hidden", model=model)

    def prepare_decoder(self, model, shape, ids, precision="f32"):
        return self.prepare("decoder", {"ids": ids}, "logits", model=str(model), shape=shape, precision=precision)

    def turn(self, evidence, seconds):
        return self.ask(run=evidence, seconds=seconds)["seconds"]

    def peak(self):
        self.ask(prepare="peak")
        return self.ask(run="none", seconds=0)

    def working_bytes(self, evidence):
        return self.ask(memory=evidence)["bytes"]
