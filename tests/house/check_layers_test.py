# SPDX-License-Identifier: Apache-2.0
"""scripts/check_layers.py finds every planted fault in a small tree, and nothing in a clean one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

CLEAN = {
    "clearhead/CMakeLists.txt": "foreach(layer base tensor kernels)\n  add_subdirectory(${layer})\nendforeach()\n",
    "clearhead/base/CMakeLists.txt": "add_layer(base LIBRARIES fmt::fmt)\n",
    "clearhead/base/error.h": "#include <string>\n",
    "clearhead/tensor/CMakeLists.txt": "# DEPENDS kernels\nadd_layer(tensor\n  DEPENDS base\n  LIBRARIES fmt::fmt)\n",
    "clearhead/tensor/shape.h": "#include <fmt/format.h>\n",
    "clearhead/tensor/shape.cc": '#include "clearhead/tensor/shape.h"\n#  include "clearhead/base/error.h"\n',
    "clearhead/kernels/CMakeLists.txt": "add_layer(kernels)\n",
    "clearhead/kernels/loop.h": "",
    "clearhead/apps/cli/main.cc": '#include "clearhead/tensor/shape.h"\n#include "clearhead/kernels/loop.h"\n',
    "clearhead/views/planned.md": "no source, no layer yet\n",
}


def check(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout.splitlines()


class CheckLayers(unittest.TestCase):
    def expect_fault(self, changes, fault):
        self.assertEqual(check(changes), (1, [fault]))

    def test_clean_tree_passes(self):
        self.assertEqual(check({}), (0, []))

    def test_include_that_depends_does_not_name(self):
        self.expect_fault(
            {"clearhead/kernels/loop.cc": '\n#include "clearhead/base/error.h"\n'},
            "clearhead/kernels/loop.cc:2: includes clearhead/base/error.h, but DEPENDS of kernels does not name base")

    def test_upward_include(self):
        self.expect_fault(
            {"clearhead/base/error.cc": '#include "clearhead/tensor/shape.h"\n'},
            "clearhead/base/error.cc:1: includes clearhead/tensor/shape.h, but DEPENDS of base does not name tensor")

    def test_include_in_angle_brackets_counts(self):
        self.expect_fault(
            {"clearhead/base/error.cc": "#include <clearhead/tensor/shape.h>\n"},
            "clearhead/base/error.cc:1: includes clearhead/tensor/shape.h, but DEPENDS of base does not name tensor")

    def test_what_comes_through_another_layer_must_be_named_too(self):
        self.expect_fault(
            {"clearhead/kernels/CMakeLists.txt": "add_layer(kernels DEPENDS tensor)\n",
             "clearhead/kernels/loop.h": '#include "clearhead/tensor/shape.h"\n#include "clearhead/base/error.h"\n'},
            "clearhead/kernels/loop.h:2: includes clearhead/base/error.h, but DEPENDS of kernels does not name base")

    def test_upward_depends(self):
        self.expect_fault(
            {"clearhead/base/CMakeLists.txt": "add_layer(base DEPENDS tensor)\n",
             "clearhead/base/error.cc": '#include "clearhead/tensor/shape.h"\n'},
            "clearhead/base/CMakeLists.txt: DEPENDS names tensor, which stands above base")

    def test_unused_depends(self):
        self.expect_fault(
            {"clearhead/kernels/CMakeLists.txt": "add_layer(kernels DEPENDS base)\n"},
            "clearhead/kernels/CMakeLists.txt: DEPENDS names base, which no file of kernels includes")

    def test_depends_on_nothing_known(self):
        status, faults = check({"clearhead/kernels/CMakeLists.txt": "add_layer(kernels DEPENDS bass)\n"})
        self.assertEqual(status, 1)
        self.assertIn("clearhead/kernels/CMakeLists.txt: DEPENDS names bass, which is no layer", faults)

    def test_include_without_the_full_path(self):
        self.expect_fault({"clearhead/base/error.cc": '#include "error.h"\n'},
                          'clearhead/base/error.cc:1: "error.h" does not begin with clearhead/LAYER/')

    def test_layer_outside_the_order(self):
        self.expect_fault({"clearhead/engine/CMakeLists.txt": "add_layer(engine)\n"},
                          "clearhead/engine/CMakeLists.txt: layer engine is not in the order of clearhead/CMakeLists.txt")

    def test_sources_that_belong_to_no_layer(self):
        self.expect_fault({"clearhead/views/map.cc": ""}, "clearhead/views: sources, but no CMakeLists.txt")

    def test_layer_of_another_name(self):
        self.expect_fault({"clearhead/kernels/CMakeLists.txt": "add_layer(kernel)\n"},
                          "clearhead/kernels/CMakeLists.txt: add_layer(kernel) in the folder kernels")


if __name__ == "__main__":
    unittest.main()
