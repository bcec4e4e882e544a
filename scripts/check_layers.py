#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the includes of every layer with what its add_layer() call says.

    python3 scripts/check_layers.py [ROOT]

The order of the layers is the foreach line of clearhead/CMakeLists.txt. A layer may include only itself and the layers
that its DEPENDS names; each of those must stand before it in the order and must be included somewhere. Programs under
clearhead/apps stand above all and may include anything. Prints one line for each fault; the exit code is 1 if there is any.
"""

import pathlib
import re

from print_faults import print_faults

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<(clearhead/[^>]+)>)', re.MULTILINE)
ADD_LAYER = re.compile(r"\badd_layer\s*\(([^)]*)\)")
SOURCES = {".h", ".cc", ".in"}


def order_of_layers(clearhead):
    text = (clearhead / "CMakeLists.txt").read_text()
    found = re.search(r"\bforeach\s*\(\s*layer\s+([^)]*)\)", text)
    return found.group(1).split() if found else []


def declared(folder):
    """The name and the DEPENDS of a folder's add_layer() call, or None if there is no such call."""
    text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())
    found = ADD_LAYER.search(text)
    if not found:
        return None
    words = found.group(1).split()
    depends, section = [], None
    for word in words[1:]:
        if word in ("DEPENDS", "LIBRARIES"):
            section = word
        elif section == "DEPENDS":
            depends.append(word)
    return words[0], depends


def includes_of(folder):
    """(file, line, included path) of every include that is not of the system."""
    for file in sorted(folder.rglob("*")):
        if file.suffix not in SOURCES or not file.is_file():
            continue
        text = file.read_text(errors="replace")
        for found in INCLUDE.finditer(text):
            yield file, text.count("\n", 0, found.start()) + 1, found.group(1) or found.group(2)


def faults_of_layer(root, folder, order):
    name = folder.name
    where = (folder / "CMakeLists.txt").relative_to(root)
    if name not in order:
        yield f"{where}: layer {name} is not in the order of clearhead/CMakeLists.txt"
        return
    call = declared(folder)
    if call is None:
        yield f"{where}: no add_layer() call"
        return
    if call[0] != name:
        yield f"{where}: add_layer({call[0]}) in the folder {name}"
    depends, used = call[1], set()
    for lower in depends:
        if lower not in order:
            yield f"{where}: DEPENDS names {lower}, which is no layer"
        elif order.index(lower) >= order.index(name):
            yield f"{where}: DEPENDS names {lower}, which stands above {name}"
    for file, line, path in includes_of(folder):
        place = f"{file.relative_to(root)}:{line}"
        parts = path.split("/")
        if parts[0] != "clearhead" or len(parts) < 3:
            yield f'{place}: "{path}" does not begin with clearhead/LAYER/'
            continue
        used.add(parts[1])
        if parts[1] != name and parts[1] not in depends:
            yield f"{place}: includes {path}, but DEPENDS of {name} does not name {parts[1]}"
    for lower in depends:
        if lower not in used:
            yield f"{where}: DEPENDS names {lower}, which no file of {name} includes"


def faults(root):
    clearhead = root / "clearhead"
    order = order_of_layers(clearhead)
    if not order:
        yield "clearhead/CMakeLists.txt: no foreach(layer ...) line that gives the order"
        return
    for folder in sorted(path for path in clearhead.iterdir() if path.is_dir() and path.name != "apps"):
        if (folder / "CMakeLists.txt").exists():
            yield from faults_of_layer(root, folder, order)
        elif any(file.suffix in SOURCES for file in folder.rglob("*")):
            yield f"{folder.relative_to(root)}: sources, but no CMakeLists.txt"


if __name__ == "__main__":
    print_faults(faults, __doc__.splitlines()[0])
