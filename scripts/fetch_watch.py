# SPDX-License-Identifier: Apache-2.0
"""What fetch_model.py needs to run programs and to show how far they are."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time


class Progress:
    """One line on stderr about work that takes over a second: a bar on a terminal, else a line every five seconds."""

    def __init__(self, name):
        self.name, self.start, self.last, self.drawn = name, time.monotonic(), 0.0, False
        self.terminal = sys.stderr.isatty()

    def show(self, what, done=0, total=0):
        now = time.monotonic()
        if now - self.start < 1 or now - self.last < (0.1 if self.terminal else 5):
            return
        self.last = now
        megabytes = f", {done >> 20} of {max(total, done) >> 20} MB" if total else ""
        bar = "#" * round(30 * min(done / total, 1.0)) if total else ""
        if self.terminal:
            print(f"\r{self.name}: [{bar:.<30}] {what}{megabytes}\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = True
        else:
            print(f"{self.name}: {what}{megabytes}", file=sys.stderr, flush=True)

    def clear(self):
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = False


def bytes_below(folder):
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # pip removes files of its own while we look
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def run(command, environment, watch):
    """Runs a program in a group of its own, which ends with us; gives its exit code and the text of its stderr."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                 env=environment, start_new_session=True)
        try:
            while child.poll() is None:
                watch()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(0.1)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        errors.seek(0)
        return child.returncode, errors.read().decode("utf-8", "replace")


def last_complaint(text):
    """The line of a program's stderr that tells most, printable."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    found = (errors or lines or ["no reason given"])[-1]
    return "".join(c if c.isprintable() else "?" for c in found.removeprefix("ERROR:").strip())[:300]
