#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/rebuild_weights.py finds every weight of the golden trace again in every bit, and notices a wrong one."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from python_with_numpy import python_with_numpy  # noqa: E402

SCRIPT = ROOT / "examples" / "rebuild_weights.py"
TRACE = ROOT / "tests" / "engine" / "data" / "trace" / "gemma2.safetensors"


class RebuildWeights(unittest.TestCase):
    def rebuild(self, trace, *flags):
        python = python_with_numpy()
        if python is None:
            self.skipTest("no Python with numpy")
        return subprocess.run([python, SCRIPT, trace, *flags], capture_output=True, text=True)

    def test_every_bit_of_a_trace_is_rebuilt_by_numpy(self):
        done = self.rebuild(TRACE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(" weights: 0 differ in a bit, the largest difference is 0.0e+00\n", done.stdout)
        self.assertIn("kernel scores that differ in a bit: 0\n", done.stdout)

    def test_softmax_in_double_has_other_bits(self):
        done = self.rebuild(TRACE, "--plain")
        self.assertNotIn(" weights: 0 differ in a bit", done.stdout)

    def test_a_wrong_sum_is_noticed(self):
        content = TRACE.read_bytes()
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
            file.write(content.replace(b'"layers.0.row_sum"', b'"layers.0.row_mus"'))
            file.flush()
            done = self.rebuild(file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn("record them too", done.stderr)


if __name__ == "__main__":
    unittest.main()
