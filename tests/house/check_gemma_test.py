# SPDX-License-Identifier: Apache-2.0
"""scripts/check_gemma.sh fetches nothing before the terms are accepted, and counts what fails. Tools are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_gemma.sh"
TESTS = """if [ "$1" = --gtest_list_tests ]; then printf 'Gemma.\\n  One\\n  Two\\n  Three\\n'; exit; fi
"""
GREEN = TESTS + "echo '[  PASSED  ] 3 tests.'"
RED = TESTS + "printf '[  PASSED  ] 2 tests.\\n[  FAILED  ] 1 test, listed below:\\n'; exit 1"
DEAD = TESTS + "exit 139"


class CheckGemma(unittest.TestCase):
    def run_check(self, tests=GREEN, clearhead="true", **environment):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("scripts", "bin", "build/bin"):
                (root / name).mkdir(parents=True)
            shutil.copy(SCRIPT, root / "scripts")
            for place, body in {"bin/cmake": "true", "scripts/setup.sh": "true", "build/bin/gemma_test": tests,
                                "build/bin/clearhead": f'echo "$1 $2" >>{root}/calls; {clearhead}'}.items():
                (root / place).write_text(f"#!/usr/bin/env bash\n{body}\n")
                (root / place).chmod(0o755)
            environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", **environment}
            run = subprocess.run([root / "scripts" / "check_gemma.sh"], env=environment, capture_output=True, text=True,
                                 stdin=subprocess.DEVNULL, check=False)
            calls = root / "calls"
            return run, calls.read_text().splitlines() if calls.exists() else []

    def test_without_acceptance_nothing_is_fetched(self):
        for wrong in ("", "0", "yes"):
            run, calls = self.run_check(CHECK_GEMMA_ACCEPT_LICENSE=wrong)
            self.assertEqual((run.returncode, calls), (2, []))
            self.assertIn("https://ai.google.dev/gemma/terms", run.stderr)
            self.assertIn("CHECK_GEMMA_ACCEPT_LICENSE=1 make check-gemma", run.stderr)

    def test_all_green(self):
        run, calls = self.run_check(CHECK_GEMMA_ACCEPT_LICENSE="1")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (0, "7 passed, 0 failed"), run.stderr)
        self.assertEqual(calls[0], "fetch gemma-3-270m")
        self.assertEqual([call.split()[0] for call in calls], ["fetch", "attend", "generate", "record", "verify"])

    def test_what_fails_is_counted(self):
        for tests, wrong in ((RED, 1), (DEAD, 3)):
            run, _ = self.run_check(tests=tests, CHECK_GEMMA_ACCEPT_LICENSE="1")
            self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (1, f"{7 - wrong} passed, {wrong} failed"))
        run, _ = self.run_check(clearhead='[ "$1" != verify ]', CHECK_GEMMA_ACCEPT_LICENSE="1")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (1, "6 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
