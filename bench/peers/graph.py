# SPDX-License-Identifier: Apache-2.0
"""A few lines to write an ONNX graph with, node by node."""
import numpy
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"
TYPES = {numpy.dtype("float32"): TensorProto.FLOAT, numpy.dtype("int64"): TensorProto.INT64,
         numpy.dtype("int32"): TensorProto.INT32}


class Graph:
    def __init__(self):
        self.nodes, self.inputs, self.constants = [], [], []

    def input(self, name, values):
        """An input of the type and shape of values."""
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[values.dtype], values.shape))
        return name

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(values), name))
        return name

    def ints(self, *values):
        return self.constant(numpy.array(values, numpy.int64))

    def op(self, kind, *inputs, domain="", outputs=1, **attributes):
        names = [f"n{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, output, opset):
        """Bytes of the model that gives output, of a shape that the runtime infers."""
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "graph", self.inputs, [result], self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    # Pieces that several graphs have.

    def repeat_heads(self, x, group, axis):
        """[..., kv_heads, ...] -> [..., heads, ...], each kv head group times; rank 4."""
        if group == 1:
            return x
        wide = self.op("Unsqueeze", x, self.ints(axis + 1))
        sizes = [1] * 5
        sizes[axis + 1] = group
        wide = self.op("Expand", wide, self.ints(*sizes))
        sizes = self.op("Split", self.op("Shape", x), outputs=4, axis=0, num_outputs=4)
        sizes[axis] = self.op("Mul", sizes[axis], self.ints(group))
        return self.op("Reshape", wide, self.op("Concat", *sizes, axis=0))
