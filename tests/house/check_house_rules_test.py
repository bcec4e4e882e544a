# SPDX-License-Identifier: Apache-2.0
"""scripts/check_house_rules.py finds every planted fault in a small tree, and nothing in a clean one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_house_rules.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
SKIP = "GTEST_" + "SKIP() << 1;"
FAULTS = "# Faults\n\n| fault | threads | tests |\n|---|---|---|\n"
TABLE = "| test | why |\n|---|---|\n"

CLEAN = {
    "clearhead/base/error.h": SPDX + "#pragma once\n",
    "clearhead/text/unicode_tables.cc": SPDX + "\n" * 1000,
    "scripts/run.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n",
    "README.md": "Words may be anything: \u4e66\n",
    "build/generated.cc": "\u4e66\n",
    "tests/base/error_test.cc": SPDX + "TEST(Error, MayBeSkipped) {\n  " + SKIP + "\n}\nTEST(Error, Text) {}\n",
    "docs/faults.md": FAULTS + "| 1. Wrong | here#1 | `Error.Text`, `Error.MayBeSkipped` |\n",
    "tests/SKIPPED.md": TABLE + "| `Error.MayBeSkipped` | no such machine |\n",
}


def check(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout.splitlines()


class CheckHouseRules(unittest.TestCase):
    def expect_fault(self, changes, fault):
        self.assertEqual(check(changes), (1, [fault]))

    def test_faults_name_tests_that_exist(self):
        row = "| 2. Worse | here#2 | "
        self.expect_fault({"docs/faults.md": FAULTS + row + "`Error.Text`, `Error.Gone` |\n"}, "docs/faults.md:5: there is no test Error.Gone")
        self.expect_fault({"docs/faults.md": FAULTS + row + "none |\n"}, "docs/faults.md:5: no test is named")

    def test_clean_tree_passes(self):
        self.assertEqual(check({}), (0, []))

    def test_licence_line(self):
        self.expect_fault({"clearhead/base/a.cc": "int a;\n"},
                          "clearhead/base/a.cc:1: no line with SPDX-License-Identifier: Apache-2.0")

    def test_ascii(self):
        self.expect_fault({"clearhead/base/a.cc": SPDX + "// \u4e66\n"},
                          "clearhead/base/a.cc:2: not ASCII; write \\u escapes")

    def test_length(self):
        self.expect_fault({"clearhead/base/a.cc": SPDX + "\n" * 400},
                          "clearhead/base/a.cc:401: 401 lines, more than 400")

    def test_regular_expressions(self):
        self.expect_fault({"clearhead/base/a.cc": SPDX + "std::" + "regex r;\n"},
                          "clearhead/base/a.cc:2: std::" + "regex: std::" + "regex overflows the stack on long texts")

    def test_fast_mathematics(self):
        self.expect_fault({"cmake/Flags.cmake": "add(-ffast" + "-math)\n"},
                          "cmake/Flags.cmake:1: -ffast" + "-math: -ffast" + "-math changes results")

    def test_unfinished_work(self):
        self.expect_fault({"clearhead/base/a.cc": SPDX + "\n// TO" + "DO\n"},
                          "clearhead/base/a.cc:3: TO" + "DO: unfinished work")

    def test_skip_without_reason(self):
        self.expect_fault({"tests/base/a_test.cc": SPDX + "TEST(A, B) {\n" + SKIP + "\n}\n"},
                          "tests/base/a_test.cc:3: A.B may be skipped, but tests/SKIPPED.md gives no reason")

    def test_skip_outside_a_test_is_named_by_its_file(self):
        self.expect_fault({"tests/base/a_test.cc": SPDX + "void SetUp() {" + SKIP + "}\n"},
                          "tests/base/a_test.cc:2: tests/base/a_test.cc may be skipped, but tests/SKIPPED.md gives no reason")

    def test_decorator_belongs_to_the_test_below_it(self):
        text = "# " + SPDX[3:] + "def test_a():\n    pass\n@unittest." + "skipIf(True, '')\ndef test_b():\n    pass\n"
        self.expect_fault({"tests/base/a_test.py": text},
                          "tests/base/a_test.py:4: test_b may be skipped, but tests/SKIPPED.md gives no reason")

    def test_row_with_an_empty_reason(self):
        self.expect_fault({"tests/SKIPPED.md": TABLE + "| `Error.MayBeSkipped` | |\n"},
                          "tests/base/error_test.cc:3: Error.MayBeSkipped may be skipped, but tests/SKIPPED.md gives no reason")

    def test_row_of_a_test_that_is_never_skipped(self):
        self.expect_fault({"tests/SKIPPED.md": CLEAN["tests/SKIPPED.md"] + "| `Error.Text` | old |\n"},
                          "tests/SKIPPED.md: Error.Text is never skipped")


if __name__ == "__main__":
    unittest.main()
