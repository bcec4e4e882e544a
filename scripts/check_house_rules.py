#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the rules of the house that no compiler knows.

    python3 scripts/check_house_rules.py [ROOT]

Code begins with its SPDX line, is ASCII, has at most 400 lines a file (generated *_tables.cc may have more), holds no
mark of unfinished work, no std:: regular expression and no flag that loosens floating point. A test that may be skipped
has a line in tests/SKIPPED.md, and every line there names a test that exists. So does every row of docs/faults.md: its
last column names tests, at least one. Prints one line for each fault; the exit code is 1 if there is any.
"""

import pathlib
import re
import subprocess

from print_faults import print_faults

SPDX = "SPDX-License-Identifier: Apache-2.0"
MAX_LINES = 400
CODE = {".h", ".cc", ".py", ".sh", ".cmake", ".js", ".mjs", ".css"}
NAMES = {"CMakeLists.txt", "Makefile", ".ci/run"}
NEEDS_SPDX = CODE - {".cmake"}
CXX = {".h", ".cc"}
# Written in two parts, so that this file does not find itself.
FORBIDDEN = [
    (re.compile(r"\bstd::" + r"w?regex\b"), CXX, "std::" + "regex overflows the stack on long texts"),
    (re.compile(r"-ffast" + r"-math"), CODE | {""}, "-ffast" + "-math changes results"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b"), CODE | {""}, "unfinished work"),
]
SKIP = re.compile(r"\bGTEST_" + r"SKIP\b|\bskip" + r"Test\(|@unittest\.skip")
TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+)\s*,\s*(\w+)|^\s*def (test_\w+)\(", re.MULTILINE)
BUILD_FOLDERS = {"build", ".git", ".cache", "__pycache__", "node_modules"}


def files_of(root):
    """Files under version control; in a tree without it, all that are not built."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listing.returncode == 0 and (root / ".git").exists():
        names = [pathlib.Path(name) for name in listing.stdout.split("\0") if name]
    else:
        names = sorted(path.relative_to(root) for path in root.rglob("*"))
    for name in names:
        if (root / name).is_file() and not BUILD_FOLDERS & set(name.parts[:-1]):
            yield name


def is_code(name):
    return name.suffix in CODE or name.name in NAMES or str(name) in NAMES


def faults_of_code(name, text):
    lines = text.splitlines()
    if name.suffix in NEEDS_SPDX and not any(SPDX in line for line in lines[:2]):
        yield f"{name}:1: no line with {SPDX}"
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            yield f"{name}:{number}: not ASCII; write \\u escapes"
    if len(lines) > MAX_LINES and not name.stem.endswith("_tables"):
        yield f"{name}:{MAX_LINES + 1}: {len(lines)} lines, more than {MAX_LINES}"
    for pattern, suffixes, reason in FORBIDDEN:
        if name.suffix in suffixes:
            for found in pattern.finditer(text):
                yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found.group(0)}: {reason}"


def skips_of(name, text):
    """(line, name of the test) of each place that may skip a test: the test around it, the test below a decorator, or
    the name of the file."""
    tests = [(found.start(), found.group(3) or f"{found.group(1)}.{found.group(2)}") for found in TEST.finditer(text)]
    for found in SKIP.finditer(text):
        before = [test for start, test in tests if start < found.start()]
        after = [test for start, test in tests if start > found.start()]
        near = after[:1] if found.group(0).startswith("@") else before[-1:]
        yield text.count("\n", 0, found.start()) + 1, near[0] if near else str(name)


def faults_of_skips(skips, skipped):
    """skips: (file, line, test). skipped: the text of tests/SKIPPED.md, where `test` begins a row of the table."""
    rows = re.findall(r"^\|\s*`([^`]+)`\s*\|\s*(.*?)\s*\|\s*$", skipped, re.MULTILINE)
    excused = {test for test, reason in rows if reason}
    for name, line, test in skips:
        if test not in excused:
            yield f"{name}:{line}: {test} may be skipped, but tests/SKIPPED.md gives no reason"
    for test, _ in rows:
        if test not in {known for _, _, known in skips}:
            yield f"tests/SKIPPED.md: {test} is never skipped"


def faults_of_table(tests, table):
    """tests: names of all tests. table: the text of docs/faults.md, where `test`s stand in a row's last column."""
    for number, line in enumerate(table.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not re.match(r"\d+\. ", cells[0]):
            continue
        named = re.findall(r"`([^`]+)`", cells[-1])
        if not named:
            yield f"docs/faults.md:{number}: no test is named"
        for test in named:
            if test not in tests:
                yield f"docs/faults.md:{number}: there is no test {test}"


def faults(root):
    skips, tests = [], set()
    for name in files_of(root):
        if not is_code(name):
            continue
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        yield from faults_of_code(name, text)
        if name.parts[0] in ("tests", "python"):
            skips += [(name, line, test) for line, test in skips_of(name, text)]
            tests |= {found.group(3) or f"{found.group(1)}.{found.group(2)}" for found in TEST.finditer(text)}
    skipped = root / "tests" / "SKIPPED.md"
    yield from faults_of_skips(skips, skipped.read_text(encoding="utf-8") if skipped.exists() else "")
    table = root / "docs" / "faults.md"
    yield from faults_of_table(tests, table.read_text(encoding="utf-8") if table.exists() else "")


if __name__ == "__main__":
    print_faults(faults, __doc__.splitlines()[0])
