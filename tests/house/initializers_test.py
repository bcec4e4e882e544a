#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What runs before main, and what is compiled for every machine, needs no more than the machine of the build: a program
that raises SIGILL on an older processor cannot even say so."""
import os
import platform
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["CLEARHEAD_BUILD"]) / "bin" / "clearhead"
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
BEFORE_MAIN = re.compile(r"^(_GLOBAL__sub_I_|_Z41__static_initialization_and_destruction)|^__cxx_global_var_init")
WIDE = re.compile(r"^\s*[0-9a-f]+:\s+(v[a-z0-9]+)\b")  # instructions in the encoding of AVX begin with v


def wide_instructions(listing, chosen):
    """(function, instruction) of the chosen functions of a disassembly; the number of those functions."""
    function, wide, functions = "", [], 0
    for line in listing.splitlines():
        head = FUNCTION.match(line)
        if head:
            function = head.group(1)
            functions += bool(chosen(function))
        elif chosen(function) and WIDE.match(line):
            wide.append((function, line.strip()))
    return wide, functions


class Initializers(unittest.TestCase):
    def test_no_wide_instruction_runs_before_main(self):
        if platform.machine() not in ("x86_64", "AMD64"):
            return  # other machines are built for what they have
        listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", PROGRAM], capture_output=True, text=True, check=True).stdout
        wide, functions = wide_instructions(listing, BEFORE_MAIN.match)
        self.assertEqual(wide, [])
        self.assertGreater(functions, 0, "no initializer was found: was the program stripped?")
        kernels, _ = wide_instructions(listing, lambda name: "N_AVX2" in name)
        self.assertGreater(len(kernels), 100, "no kernel for AVX2 was found: does this test see anything?")

    def test_no_flag_asks_for_a_processor(self):
        for path in [ROOT / "CMakeLists.txt", ROOT / "CMakePresets.json", *(ROOT / "cmake").iterdir(), *(ROOT / "clearhead").rglob("CMakeLists.txt")]:
            flags = re.findall(r"-m(?:arch|tune|cpu|avx|sse|fma)\b[^\s\"]*", path.read_text())
            self.assertEqual(flags, [], path)


if __name__ == "__main__":
    unittest.main()
