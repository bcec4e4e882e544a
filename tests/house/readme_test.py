# SPDX-License-Identifier: Apache-2.0
"""The commands that README.md and docs/ show are run.

A fenced block that opens with ```sh run is run, line by line, in a folder of its own for each page, with the built
program on the PATH. A line that ends with a backslash goes on in the next; `$ ` in front of a command is dropped, and
then lines without it are shown output. Each command must end with exit code 0, or with the code that a trailing comment
announces: `clearhead attend "" # exit 2`. Blocks that open with ```sh alone are only shown.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh run[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
ANNOUNCED = re.compile(r"#\s*exit (\d+)\s*$")


def commands_of(page):
    """(command, exit code) of every command in the blocks of a page that are to be run."""
    for block in BLOCK.findall(page):
        lines = block.replace("\\\n", " ").splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        for line in lines:
            if prompted and not line.startswith("$ "):
                continue
            command = line.removeprefix("$ ").strip()
            if not command or command.startswith("#"):
                continue
            announced = ANNOUNCED.search(command)
            yield command, int(announced.group(1)) if announced else 0


def fault_of(command, expected, folder, environment):
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    if run.returncode == expected:
        return None
    return f"{command}\nexit code {run.returncode}, expected {expected}\n{run.stdout.decode(errors='replace')}"


class Convention(unittest.TestCase):
    def test_only_marked_blocks_are_run(self):
        page = "```sh\nmake demo\n```\n\n```sh run\ntrue\n```\n```python\nprint()\n```\n"
        self.assertEqual(list(commands_of(page)), [("true", 0)])

    def test_prompts_output_comments_and_long_lines(self):
        page = "```sh run\n# first\n$ echo a \\\n  b\na b\n\n$ false # exit 1\n```\n"
        self.assertEqual(list(commands_of(page)), [("echo a    b", 0), ("false # exit 1", 1)])

    def test_an_unexpected_exit_code_is_a_fault(self):
        self.assertIsNone(fault_of("true", 0, "/", os.environ))
        self.assertIsNone(fault_of("exit 3 # exit 3", 3, "/", os.environ))
        self.assertIn("exit code 1, expected 0", fault_of("false | true", 0, "/", os.environ))
        self.assertIn("exit code 0, expected 2", fault_of("echo fine", 2, "/", os.environ))


class Pages(unittest.TestCase):
    def test_commands_work(self):
        readme = ROOT / "README.md"
        self.assertTrue(readme.exists(), "README.md is missing: it says what Clearhead is and shows the first commands")
        environment = {**os.environ, "PATH": f"{os.environ['CLEARHEAD_BUILD']}/bin:{os.environ['PATH']}"}
        ran = 0
        for page in [readme, *sorted((ROOT / "docs").rglob("*.md"))]:
            with tempfile.TemporaryDirectory() as folder:
                for command, expected in commands_of(page.read_text(encoding="utf-8")):
                    ran += 1
                    fault = fault_of(command, expected, folder, environment)
                    with self.subTest(page=str(page.relative_to(ROOT)), command=command):
                        self.assertIsNone(fault, fault)
        self.assertGreater(ran, 0, "no block of README.md opens with ```sh run")


if __name__ == "__main__":
    unittest.main()
