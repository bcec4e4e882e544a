# SPDX-License-Identifier: Apache-2.0
"""What the checkers of the house have in common: a line for each fault of a tree, and the exit code."""

import argparse
import pathlib
import sys


def print_faults(faults, description):
    """Run a checker on the tree named on the command line, this one by default; exit with 1 if it finds a fault."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    found = list(faults(root))
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)
