# SPDX-License-Identifier: Apache-2.0
"""`make demo` shows real attention, or says what is missing and shows the toy. The build and clearhead are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MAKE = shutil.which("make")

ENGLISH = ["attend The cat sat on the mat", "attend --layer 5 --head 11 The cat sat on the mat",
           "attend --layer 5 --head 3 The cat sat on the mat"]
CHINESE = "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002"


class Demo(unittest.TestCase):
    def run_demo(self, make="true", fetch="true", fetch_second="true"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("scripts", "bin", "build/bin"):
                (root / name).mkdir(parents=True)
            shutil.copy(SOURCE / "scripts" / "demo.sh", root / "scripts")
            shutil.copy(SOURCE / "Makefile", root)
            self.stand_in(root / "bin" / "make", make)
            self.stand_in(root / "build" / "bin" / "clearhead",
                          f'echo "$@" >>{root}/calls; [ "$1" != fetch ] || '
                          f'if [ "$2" = minilm ]; then {fetch}; else {fetch_second}; fi')
            environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}
            environment.pop("MAKEFLAGS", None)
            run = subprocess.run([MAKE, "-C", root, "demo"], env=environment, capture_output=True, encoding="utf-8",
                                 stdin=subprocess.DEVNULL, check=False)
            calls = root / "calls"
            return run, calls.read_text().splitlines() if calls.exists() else []

    @staticmethod
    def stand_in(path, body):
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)

    def test_it_ends_with_real_attention(self):
        run, calls = self.run_demo()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(calls, ["fetch minilm", "fetch multilingual-e5-small", *ENGLISH, f"attend {CHINESE}",
                                 f"attend --from \u4e66 {CHINESE}"])
        self.assertIn(f'$ clearhead attend "{CHINESE}"\n', run.stdout)

    def test_without_the_second_model_the_chinese_sentence_is_left_out(self):
        run, calls = self.run_demo(fetch_second="{ echo no network >&2; exit 1; }")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no network\nmultilingual-e5-small could not be fetched", run.stderr)
        self.assertEqual(calls, ["fetch minilm", "fetch multilingual-e5-small", *ENGLISH])

    def test_without_network_it_says_so_and_shows_the_toy(self):
        run, calls = self.run_demo(fetch="{ echo no network >&2; exit 1; }")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no network\nminilm could not be fetched", run.stderr)
        self.assertEqual(calls, ["fetch minilm", "lesson --toy"])

    def test_a_failed_build_ends_it(self):
        run, calls = self.run_demo(make="exit 2")
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(calls, [])


if __name__ == "__main__":
    unittest.main()
