# SPDX-License-Identifier: Apache-2.0
"""scripts/check.sh counts tests and steps, shows the log of what failed, and ends with its summary. Tools are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check.sh"
GREEN = """cat <<'END'
 7/10 Test  #7: kernels.Softmax.Fused ...***Skipped   0.01 sec
100% tests passed, 0 tests failed out of 10

Total Test time (real) =   1.50 sec
END"""
RED = """cat <<'END'
100% tests passed, 0 tests failed out of 3
Total Test time (real) =   9.99 sec
 3/10 Test  #3: base.Utf8 ...***Failed   0.01 sec
80% tests passed, 2 tests failed out of 10

Total Test time (real) =   1.50 sec
END
exit 8"""


class Check(unittest.TestCase):
    def run_check(self, **changes):
        """changes: the bodies of stand-ins, by the name of the tool, dots written as underlines."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "scripts").mkdir()
            (root / "bin").mkdir()
            (root / "build" / "bin").mkdir(parents=True)
            (root / "build" / "debug" / "bin").mkdir(parents=True)
            (root / "tests" / "base").mkdir(parents=True)
            (root / "tests" / "base" / "CMakeLists.txt").touch()
            shutil.copy(SCRIPT, root / "scripts")
            places = {"cmake": "bin/cmake", "ctest": "bin/ctest", "clearhead": "build/bin/clearhead",
                      "text_fuzz": "build/debug/bin/text_fuzz"}
            for script in ("setup.sh", "check_layers.py", "check_house_rules.py", "format.sh"):
                places[script.replace(".", "_")] = f"scripts/{script}"
            for name, place in places.items():
                body = changes.get(name, GREEN if name == "ctest" else "true")
                (root / place).write_text(f"#!/usr/bin/env bash\n{body}\n")
                (root / place).chmod(0o755)
            environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}
            run = subprocess.run([root / "scripts" / "check.sh"], env=environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
            return run.returncode, run.stdout.splitlines()

    # Steps: layers, house rules, format, three builds, three models, fuzz. Tests: three times ten, one of each skipped.
    def test_all_green(self):
        status, lines = self.run_check()
        self.assertEqual((status, lines[-1]), (0, "37 passed, 0 failed"), "\n".join(lines))
        self.assertIn("release: 100% tests passed, 0 tests failed out of 10 (1 skipped), "
                      "Total Test time (real) =   1.50 sec", lines)

    def test_failed_tests_are_counted_and_shown(self):
        status, lines = self.run_check(ctest=RED)
        self.assertEqual((status, lines[-1]), (1, "34 passed, 6 failed"), "\n".join(lines))
        self.assertIn(" 3/10 Test  #3: base.Utf8 ...***Failed   0.01 sec", lines)

    def test_tests_that_do_not_run_are_a_failure(self):
        status, lines = self.run_check(ctest="echo No tests were found; exit 1")
        self.assertEqual((status, lines[-1]), (1, "10 passed, 3 failed"), "\n".join(lines))

    def test_a_failed_step_shows_its_log_and_the_others_go_on(self):
        status, lines = self.run_check(format_sh="echo 'session.cc:3: too long'; exit 1", check_layers_py="exit 1")
        self.assertEqual((status, lines[-1]), (1, "35 passed, 2 failed"), "\n".join(lines))
        self.assertIn("session.cc:3: too long", lines)

    def test_a_crash_of_a_fuzzer_fails(self):
        status, lines = self.run_check(text_fuzz="echo stack-overflow; exit 1")
        self.assertEqual((status, lines[-1]), (1, "36 passed, 1 failed"), "\n".join(lines))
        self.assertIn("stack-overflow", lines)

    def test_a_failed_build_fails_and_its_tests_do_not_run(self):
        status, lines = self.run_check(cmake="[ \"$2\" != tsan ] || { echo 'error: no'; exit 1; }")
        self.assertEqual((status, lines[-1]), (1, "27 passed, 1 failed"), "\n".join(lines))
        self.assertIn("error: no", lines)

    def test_without_set_up_nothing_runs(self):
        status, lines = self.run_check(setup_sh="echo missing; exit 1")
        self.assertEqual((status, lines), (1, ["missing"]))


if __name__ == "__main__":
    unittest.main()
