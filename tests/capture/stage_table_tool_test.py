# SPDX-License-Identifier: Apache-2.0
"""The program that keeps the stage table of ARCHITECTURE.md: python3 stage_table_tool_test.py PROGRAM"""

import pathlib
import subprocess
import sys
import tempfile

program = sys.argv[1]


def run(*arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder) / "page.md"
    page.write_text("before\n<!-- stage table -->\nold\n<!-- end -->\nbehind\n")
    stale = run("--check", str(page))
    assert stale.returncode == 1 and f"run: {program} --update {page}" in stale.stderr, stale
    assert run("--update", str(page)).returncode == 0
    assert run("--check", str(page)).returncode == 0
    table = run().stdout
    assert "| `weights` | [batch, heads, query, key] |" in table, table
    assert page.read_text() == f"before\n<!-- stage table -->\n{table}<!-- end -->\nbehind\n"
    page.write_text("no markers")
    unmarked = run("--check", str(page))
    assert unmarked.returncode == 1 and "expected the lines <!-- stage table -->" in unmarked.stderr, unmarked
    assert run("--chekc", str(page)).returncode == 2
    assert run("--check", str(page), "more").returncode == 2
