# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh installs only what is missing, says so, and stops with the right words where it cannot.

apt-get, dpkg-query, id and sudo are stand-ins on a PATH of the test's own.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"
TOOLS = ["bash", "env", "dirname", "sed", "awk", "sort", "comm", "cat", "mktemp", "rm", "tail"]
PACKAGES = [line.split()[0] for line in (SCRIPT.parent / "packages-build.txt").read_text().splitlines()
            if line and not line.startswith("#")]


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.calls = self.bin / "calls"
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stand_in("id", "echo 0")

    def stand_in(self, name, body):
        (self.bin / name).write_text(f'#!{shutil.which("bash")}\n{body}\n')
        (self.bin / name).chmod(0o755)

    def debian(self, installed, apt_get="true"):
        known = "\\n".join(f"installed {package}" for package in installed)
        self.stand_in("dpkg-query", f"printf '{known}\\nconfig-files cmake-doc\\n'")
        self.stand_in("apt-get", f'echo "$@" >>{self.calls}; {apt_get}')

    def run_setup(self, purpose="build"):
        return subprocess.run([SCRIPT, purpose], env={"PATH": str(self.bin), "TMPDIR": str(self.bin)}, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)

    def apt_calls(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_nothing_missing_calls_nothing_and_says_nothing(self):
        self.debian(PACKAGES)
        run = self.run_setup()
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        self.assertEqual(self.apt_calls(), [])

    def test_only_what_is_missing_is_installed_and_named(self):
        self.debian([package for package in PACKAGES if package not in ("cmake", "libhwy-dev")])
        run = self.run_setup()
        self.assertEqual((run.returncode, run.stdout), (0, "Installing with apt-get: cmake libhwy-dev\n"), run.stderr)
        self.assertEqual(self.apt_calls(), ["-q update", "-q install -y --no-install-recommends cmake libhwy-dev"])

    def test_check_needs_more_than_build(self):
        self.debian(PACKAGES)
        self.assertEqual(self.run_setup("check").returncode, 0)
        self.assertIn("clang-16", self.apt_calls()[-1])
        self.assertNotIn("cmake", self.apt_calls()[-1])

    def test_apt_that_fails_is_quoted(self):
        self.debian([], apt_get="echo Temporary failure resolving; exit 100")
        run = self.run_setup()
        self.assertEqual(run.returncode, 1)
        self.assertIn("Temporary failure resolving", run.stderr)
        self.assertIn("apt-get could not install these packages", run.stderr)
        self.assertIn("nlohmann-json3-dev", run.stderr)

    def test_without_root_it_says_what_to_run(self):
        self.debian([package for package in PACKAGES if package != "cmake"])
        self.stand_in("id", "echo 1000")
        run = self.run_setup()
        self.assertEqual(run.returncode, 1)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends cmake\n", run.stderr)
        self.assertEqual(self.apt_calls(), [])

    def test_sudo_is_used_if_it_asks_nothing(self):
        self.debian([package for package in PACKAGES if package != "cmake"])
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", f'[ "$1" = -n ] || echo sudo >>{self.calls}; [ "$1" = -n ] && shift; exec "$@"')
        self.stand_in("true", "")
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual(self.apt_calls()[:2], ["sudo", "-q update"])

    def test_without_apt_it_names_what_is_missing(self):
        self.stand_in("cmake", "")
        self.stand_in("c++", "exit 1")
        run = self.run_setup()
        self.assertEqual(run.returncode, 1)
        self.assertIn("no apt-get", run.stderr)
        self.assertIn("  ninja-build (ninja)\n", run.stderr)
        self.assertIn("  libhwy-dev (<hwy/highway.h>)\n", run.stderr)
        self.assertNotIn("  cmake (cmake)\n", run.stderr)

    def test_unknown_purpose_is_wrong_usage(self):
        self.assertEqual(self.run_setup("everything").returncode, 2)


if __name__ == "__main__":
    unittest.main()
