# SPDX-License-Identifier: Apache-2.0
"""The Python that runs a script which needs numpy: this one, or the system's."""
import subprocess
import sys
from pathlib import Path


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
                return python
    return None
