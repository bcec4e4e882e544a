# SPDX-License-Identifier: Apache-2.0
"""The example program builds and runs against an installed tree, found by find_package(Clearhead)."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["CLEARHEAD_BUILD"])
CMAKE = os.environ.get("CMAKE", "cmake")


def run(*command, cwd=None):
    finished = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
    if finished.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\nexit code {finished.returncode}\n{finished.stdout}")
    return finished.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.folder.name, "prefix")
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def configure(self, source, name):
        build = pathlib.Path(self.folder.name, name)
        run(CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release")
        return build

    def test_consumer_builds_and_runs(self):
        build = self.configure(ROOT / "examples" / "consumer", "consumer")
        run(CMAKE, "--build", build)
        lines = run(build / "consumer", "cat sat", cwd=self.folder.name).splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[0], r"^cat looks at (cat|sat), 0\.\d+$")
        fault = subprocess.run([build / "consumer", "cat", "toy", "9"], capture_output=True, text=True, check=False)
        self.assertEqual(fault.returncode, 1)
        self.assertIn("LAYER", fault.stderr)

    def test_every_header_compiles_and_no_flag_leaks(self):
        source = pathlib.Path(self.folder.name, "headers")
        source.mkdir()
        headers = sorted(path.relative_to(self.prefix / "include") for path in (self.prefix / "include").rglob("*.h"))
        self.assertTrue(headers)
        (source / "headers.cc").write_text("".join(f"#include <{header}>\n" for header in headers))
        targets = " ".join(f"Clearhead::{layer}" for layer in sorted({header.parts[1] for header in headers}))
        (source / "CMakeLists.txt").write_text(f"""
            cmake_minimum_required(VERSION 3.25)
            project(Headers LANGUAGES CXX)
            set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
            find_package(Clearhead 0.1 REQUIRED)
            add_library(headers OBJECT headers.cc)
            target_link_libraries(headers PRIVATE {targets})
            """)
        build = self.configure(source, "headers-build")
        commands = (build / "compile_commands.json").read_text()
        for flag in ("-Wall", "-Werror", "-Wshadow", "-fsanitize", "-ffp-contract", str(ROOT)):
            self.assertNotIn(flag, commands)
        run(CMAKE, "--build", build)

    def test_another_major_version_is_refused(self):
        source = pathlib.Path(self.folder.name, "version")
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(V LANGUAGES CXX)\nfind_package(Clearhead 1.0 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, 'compatible with requested version "1.0"'):
            self.configure(source, "version-build")

    def test_installed_files_know_nothing_of_the_source_tree(self):
        for file in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(ROOT), file.read_text(), file)


if __name__ == "__main__":
    unittest.main()
