# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: its operator for attention, and a whole encoder read from the graph that ONNX Runtime reads too."""
import io

import numpy
import openvino
from openvino import opset13

version = "OpenVINO " + openvino.__version__.split("-")[0]
core = openvino.Core()


def way_of(model, inputs, threads):
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for index, values in enumerate(inputs):
        request.set_input_tensor(index, openvino.Tensor(values, shared_memory=True))

    def work(_held=inputs):  # their memory is shared, not counted
        request.start_async()
        request.wait()

    def answer():
        work()
        return request.get_output_tensor(0).data.copy()

    return work, answer


def heads_first(values):
    return numpy.ascontiguousarray(values.transpose(0, 2, 1, 3))


def repeat_heads(x, shape):
    if shape.group == 1:
        return x
    ints = lambda *values: opset13.constant(numpy.array(values, numpy.int64))
    wide = opset13.unsqueeze(x, ints(2))
    wide = opset13.broadcast(wide, ints(shape.batch, shape.kv_heads, shape.group, shape.key_len, shape.head_dim))
    return opset13.reshape(wide, ints(shape.batch, shape.heads, shape.key_len, shape.head_dim), False)


def attention_ways(shape, query, key, value, threads):
    inputs = [heads_first(values) for values in (query, key, value)]
    query, key, value = (opset13.parameter(values.shape, numpy.float32) for values in inputs)
    output = opset13.scaled_dot_product_attention(query, repeat_heads(key, shape), repeat_heads(value, shape),
                                                  causal=shape.causal)
    work, answer = way_of(openvino.Model([output], [query, key, value]), inputs, threads)
    return {"ScaledDotProductAttention": (work, lambda: answer().transpose(0, 2, 1, 3))}


def encoder_ways(onnx_model, ids, threads):
    """onnx_model: bytes of a graph of standard operators."""
    return {"standard graph": way_of(core.read_model(io.BytesIO(onnx_model)), [ids], threads)}
