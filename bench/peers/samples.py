# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run goes, function by function, as perf samples the process that takes our turns."""
import re
import shutil
import signal
import subprocess
import time

LINE = re.compile(r"\s*(\d+\.\d+)%\s+\[.\]\s+(.+?)(?:\s+-)*\s*$")


def plain_name(symbol):
    """The function of ours that holds a symbol: ...::N_AVX3::tile_product<4ul>(...)::{lambda...}::... -> tile_product"""
    symbol = symbol.replace("(anonymous namespace)::", "").split("::{lambda")[0].split("(")[0]
    depth, kept = 0, []
    for letter in symbol:
        depth += letter == "<"
        if depth == 0:
            kept.append(letter)
        depth -= letter == ">"
    return "".join(kept).split("::")[-1].strip()


def profile(ours, seconds):
    """[[share, function], ...] of a plain run of what is prepared; nothing without perf."""
    if not shutil.which("perf"):
        return []
    file = f"{ours.folder.name}/perf.data"
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-p", str(ours.process.pid), "-o", file]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        ours.turn("none", seconds / 4)
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    report = subprocess.run(["perf", "report", "-i", file, "--stdio", "--sort", "sym"], capture_output=True, text=True,
                            check=False).stdout
    shares = {}
    for share, symbol in (found.groups() for found in map(LINE.match, report.splitlines()) if found):
        name = plain_name(symbol) if not symbol.startswith("0x") else "system"
        shares[name] = shares.get(name, 0) + float(share)
    return [[share, name] for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share >= 2]
