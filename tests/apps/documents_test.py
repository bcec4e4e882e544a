#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README and docs show is what the program prints."""
import os, re, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Documents(unittest.TestCase):
    def test_they_show_what_the_program_prints(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/update_docs.py", "--check", "--program", os.environ["CLEARHEAD"]], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_family_has_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text('{"model_type": "mamba"}')
            shutil.copy(ROOT / "tests/engine/data/trace/tokenizer.json", folder)
            (Path(folder) / "model.safetensors").write_bytes((8).to_bytes(8, "little") + b"{}      ")
            done = subprocess.run([os.environ["CLEARHEAD"], "attend", "a", "--model", folder], capture_output=True, text=True)
        known = re.search(r"model_type to be one of: (.*); found", done.stderr)
        self.assertTrue(known, done.stderr)
        listed = (ROOT / "docs/families/README.md").read_text(encoding="utf-8")
        for name in known[1].split(", "):
            self.assertIn(f"`{name}`", listed)
        pages = {page.name for page in (ROOT / "docs/families").glob("*.md")} - {"README.md"}
        self.assertEqual(set(re.findall(r"\]\((\w+\.md)\)", listed)), pages)

    def test_a_difference_is_found(self):
        document = ROOT / "docs/input_split.md"
        text = document.read_text(encoding="utf-8")
        self.assertIn("[6, 512] -> [6, 8, 64]", text)
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "clearhead"  # the program, but for one number
            program.write_text(f"#!/bin/sh\n'{os.environ['CLEARHEAD']}' \"$@\" | sed 's/6, 512/6, 513/'\n")
            program.chmod(0o755)
            done = subprocess.run([sys.executable, ROOT / "scripts/update_docs.py", "--check", "--program", program, document], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[docs/input_split.md] expected what the program prints", done.stdout)
        self.assertRegex(done.stdout, r"\n\+ +shapes +\[6, 513\] -> \[6, 8, 64\]\n")
        self.assertEqual(document.read_text(encoding="utf-8"), text)


if __name__ == "__main__":
    unittest.main()
