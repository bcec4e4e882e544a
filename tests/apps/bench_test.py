#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clearhead bench: that it measures each part and takes turns; never how fast."""
import json, sys, tempfile, unittest
from pathlib import Path

from program import Tensors, document, run, write_tensors

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/views"))
from validate_schema import validate  # noqa: E402


class Bench(unittest.TestCase):
    def test_bench_measures_each_part_beside_the_peak(self):
        found = document("bench", "--quick", "--threads", "2", "--model", "minilm")
        validate(found, json.loads((ROOT / "docs/schema/bench.schema.json").read_text()))
        self.assertEqual([peak["threads"] for peak in found["peaks"]], [1, 2])
        self.assertEqual({row["name"] for row in found["rows"]}, {"attention", "attention memory", "encoder", "decoder", "tokenizer"})
        for row in found["rows"]:
            if row["share"] is not None:
                self.assertAlmostEqual(row["share"], row["gflops"] / row["peak_gflops"], delta=1e-9)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bench.json")
            self.assertEqual(run("bench", "tokenizer", "--quick", "--model", "minilm", "--output", str(path)).returncode, 0)
            self.assertEqual({row["name"] for row in json.loads(path.read_text())["rows"]}, {"tokenizer"})
        page = run("bench", "attention", "--quick", "--shape", "2x4/2 32 16 causal", "--threads", "1")
        self.assertEqual(page.returncode, 0, page.err)
        self.assertIn("2x4/2 32 16 causal", page.out)
        self.assertEqual(page.err, "")

    def test_a_decoder_is_measured_alone(self):
        found = document("bench", "decoder", "--quick", "--threads", "1", "--shape", "prompt 20", "--shape", "decode 5")
        rows = {(row["shape"], row["evidence"], row["precision"]): row for row in found["rows"]}
        self.assertGreater(rows["prompt 20", "none", "f32"]["tokens_per_second"], 0)
        self.assertGreater(rows["decode 5", "looks", "f32"]["tokens_per_second"], 0)
        self.assertEqual(run("bench", "decoder", "--shape", "think 5").returncode, 2)
        chosen = "clearhead: model smollm2-135m-instruct (choose another with --model)\n"
        self.assertEqual(run("bench", "decoder", "--quick", "--threads", "1", "--shape", "prompt 2").err, chosen)

    def test_bench_takes_turns_with_another_program(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{name}.safetensors" for name in ("inputs", "outputs")]
            # Two keys that weigh the same: the mean of the values.
            write_tensors(files[0], query=([1, 2, 1, 1], [0, 0]), key=([1, 2, 1, 1], [1, 1]), value=([1, 2, 1, 1], [2, 4]))
            commands = [{"prepare": "attention", "shape": "1x1 2 1", "inputs": files[0], "outputs": files[1]},
                        {"run": "rows", "seconds": 0}, {"memory": "none"}, {"prepare": "peak"}, {"run": "none", "seconds": 0}]
            done = run("bench", "--turns", stdin="\n".join(map(json.dumps, commands)).encode())
            self.assertEqual(done.returncode, 0, done.err)
            answers = [json.loads(line) for line in done.out.splitlines()]
            self.assertEqual(answers[0], {"ready": True})
            self.assertGreater(answers[1]["seconds"], 0)
            self.assertIn("bytes", answers[2])
            self.assertGreater(answers[4]["multiply_add_gflops"], 0)
            self.assertEqual(Tensors(files[1]).value("head_output", [0, 1, 0, 0]), 3)

    def test_bench_tokenizes_in_turns(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{name}.json" for name in ("texts", "outputs", "tokenizer")}
            with open(files["texts"], "w", encoding="utf-8") as file:
                json.dump(["The cat", ""], file)
            commands = [{"prepare": "tokenizer", "model": "minilm", **files}, {"run": "ids", "seconds": 0},
                        {"run": "tokens", "seconds": 0}]
            done = run("bench", "--turns", stdin="\n".join(map(json.dumps, commands)).encode())
            self.assertEqual(done.returncode, 0, done.err)
            answers = [json.loads(line) for line in done.out.splitlines()]
            self.assertEqual(answers[0], {"ready": True})
            self.assertGreater(answers[1]["seconds"], 0)
            with open(files["outputs"], encoding="utf-8") as file:
                self.assertEqual(json.load(file), [[1996, 4937], []])
            with open(files["tokenizer"], encoding="utf-8") as file:
                self.assertEqual(json.load(file)["model"]["type"], "WordPiece")


if __name__ == "__main__":
    unittest.main()
