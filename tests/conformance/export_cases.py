#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes every ONNX Attention, RotaryEmbedding and Softmax node test of the installed onnx package.

    export_cases.py OUT_DIR        needs: onnx, numpy

One safetensors file per operator. Its tensors are CASE/in.NAME and CASE/out.NAME under the operator's own names, its
metadata has "cases": a JSON list of name, opset, attributes, names of inputs and outputs, and tolerances; and "onnx",
the version of the package. Absent optional inputs are left out. Expected outputs are the package's own; bfloat16 cases
get the tolerance of its own runner (2^-6), since they are computed in bfloat16.
"""
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

OPERATORS = {"Attention": "attention", "RotaryEmbedding": "rotary_embedding", "Softmax": "softmax"}
NAMES = {
    np.dtype("float32"): "F32",
    np.dtype("float16"): "F16",
    np.dtype("float64"): "F64",
    np.dtype("bool"): "BOOL",
    np.dtype("int64"): "I64",
}
BFLOAT16_TOLERANCE = 2.0**-6


def name_of(array):
    return "BF16" if array.dtype.name == "bfloat16" else NAMES[array.dtype]


def write_safetensors(path, tensors, metadata):
    header, body, at = {"__metadata__": metadata}, [], 0
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        raw = np.ascontiguousarray(array).tobytes()
        offsets = [at, at + len(raw)]
        header[name] = {"dtype": name_of(array), "shape": list(array.shape), "data_offsets": offsets}
        body.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(body))


def arrays_of(values):
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v) for v in values]


def by_schema(formal, names, arrays):
    """The arrays of a node under the operator's names; an empty name is an input or output that is not there."""
    return {formal[i].name: arrays[name] for i, name in enumerate(names) if name}


def read_case(case):
    """What is said of a case, and its tensors."""
    graph, opset = case.model.graph, case.model.opset_import[0].version
    node = graph.node[0]
    schema = onnx.defs.get_schema(node.op_type, opset)
    given, wanted = case.data_sets[0]
    given = dict(zip([i.name for i in graph.input], arrays_of(given)))
    wanted = dict(zip([o.name for o in graph.output], arrays_of(wanted)))
    inputs = by_schema(schema.inputs, node.input, given)
    outputs = by_schema(schema.outputs, node.output, wanted)
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    bfloat16 = any(name_of(a) == "BF16" for a in [*inputs.values(), *outputs.values()])
    about = {
        "name": case.name,
        "opset": opset,
        "attributes": {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()},
        "inputs": list(inputs),
        "outputs": list(outputs),
        "rtol": BFLOAT16_TOLERANCE if bfloat16 else case.rtol,
        "atol": BFLOAT16_TOLERANCE if bfloat16 else case.atol,
    }
    tensors = {f"{case.name}/in.{name}": a for name, a in inputs.items()}
    tensors.update({f"{case.name}/out.{name}": a for name, a in outputs.items()})
    return about, tensors


def is_wanted(case):
    nodes = case.model.graph.node if case.model else []
    return len(nodes) == 1 and nodes[0].op_type in OPERATORS and "expanded" not in case.name


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    cases = {operator: [] for operator in OPERATORS}
    tensors = {operator: {} for operator in OPERATORS}
    for case in filter(is_wanted, load_model_tests(kind="node")):
        operator = case.model.graph.node[0].op_type
        about, arrays = read_case(case)
        cases[operator].append(about)
        tensors[operator].update(arrays)
    for operator, name in OPERATORS.items():
        metadata = {"onnx": onnx.__version__, "cases": json.dumps(cases[operator])}
        write_safetensors(folder / f"{name}.safetensors", tensors[operator], metadata)
        print(f"onnx {onnx.__version__} {operator}: {len(cases[operator])} cases")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    main(Path(sys.argv[1]))
