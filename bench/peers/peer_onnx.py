# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: attention by each operator that it has for it, and a whole encoder, with and without its own fused
operators. Which way is quickest for a shape, is tried."""
import math

import numpy
import onnxruntime

from graph import CONTRIB, Graph

version = "ONNX Runtime " + onnxruntime.__version__
onnxruntime.set_default_logger_severity(4)


def session_of(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def way_of(session, inputs):
    """(work, answer) with inputs and output bound beforehand."""
    binding = session.io_binding()
    for name, values in inputs.items():
        binding.bind_cpu_input(name, values)
    binding.bind_output(session.get_outputs()[0].name, "cpu")

    def work(_held=inputs):  # their memory is bound, not counted
        session.run_with_iobinding(binding)

    def answer():
        work()
        return binding.copy_outputs_to_cpu()[0]

    return work, answer


def flat(values):
    """[batch, length, heads, head_dim] -> [batch, length, heads * head_dim]"""
    return numpy.ascontiguousarray(values.reshape(*values.shape[:2], -1))


def heads_first(values):
    return numpy.ascontiguousarray(values.transpose(0, 2, 1, 3))


def operator_graph(shape, inputs):
    """The standard's operator Attention."""
    graph = Graph()
    names = [graph.input(name, values) for name, values in inputs.items()]
    output = graph.op("Attention", *names, is_causal=int(shape.causal))
    return graph.model(output, 23)


def written_out_graph(shape, inputs):
    """Two products and a softmax between them, as exported models have it."""
    graph = Graph()
    query, key, value = (graph.input(name, values) for name, values in inputs.items())
    key, value = (graph.repeat_heads(x, shape.group, 1) for x in (key, value))
    scale = graph.constant(numpy.float32(1 / math.sqrt(shape.head_dim)))
    scores = graph.op("MatMul", graph.op("Mul", query, scale), graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    if shape.causal:
        visible = numpy.tri(shape.query_len, shape.key_len, shape.key_len - shape.query_len, dtype=bool)
        scores = graph.op("Add", scores, graph.constant(numpy.where(visible, 0, -numpy.inf).astype(numpy.float32)))
    return graph.model(graph.op("MatMul", graph.op("Softmax", scores), value), 21)


def multi_head_graph(shape, inputs):
    """ONNX Runtime's own MultiHeadAttention."""
    graph = Graph()
    query, key, value = (graph.input(name, values) for name, values in inputs.items())
    if shape.group > 1:
        split = graph.ints(0, 0, shape.kv_heads, shape.head_dim)
        whole = graph.ints(0, 0, shape.heads * shape.head_dim)
        key, value = (graph.op("Reshape", graph.repeat_heads(graph.op("Reshape", x, split), shape.group, 2), whole)
                      for x in (key, value))
    output = graph.op("MultiHeadAttention", query, key, value, domain=CONTRIB, num_heads=shape.heads,
                      unidirectional=int(shape.causal))
    return graph.model(output, 21)


def group_query_graph(shape, inputs):
    """ONNX Runtime's own GroupQueryAttention, which is always causal."""
    graph = Graph()
    names = [graph.input(name, values) for name, values in inputs.items()]
    lengths = graph.constant(numpy.full(shape.batch, shape.key_len - 1, numpy.int32))
    total = graph.constant(numpy.int32(shape.key_len))
    output = graph.op("GroupQueryAttention", *names, "", "", lengths, total, domain=CONTRIB, outputs=3,
                      num_heads=shape.heads, kv_num_heads=shape.kv_heads)[0]
    return graph.model(output, 21)


def attention_ways(shape, query, key, value, threads):
    """name -> (work, answer); and name -> why it cannot."""
    four = dict(zip(("q", "k", "v"), map(heads_first, (query, key, value))))
    three = dict(zip(("q", "k", "v"), map(flat, (query, key, value))))
    plans = {"Attention": (operator_graph, four), "MultiHeadAttention": (multi_head_graph, three)}
    if shape.operations < 2e10:
        plans["MatMul, Softmax"] = (written_out_graph, four)
    if shape.causal and shape.query_len == shape.key_len:
        plans["GroupQueryAttention"] = (group_query_graph, three)
    ways, left_out = {}, {}
    for name, (make, inputs) in plans.items():
        try:
            work, answer = way_of(session_of(make(shape, inputs), threads), inputs)
            work()
        except Exception as error:  # an operator that this version does not run on this processor
            left_out[name] = str(error).splitlines()[0]
            continue
        rank = next(iter(inputs.values())).ndim
        ways[name] = (work, (lambda a=answer: a().transpose(0, 2, 1, 3)) if rank == 4 else
                      (lambda a=answer: a().reshape(query.shape)))
    return ways, left_out


class Encoder:
    """A model of the BERT family as a graph, no padding; fused: with ONNX Runtime's own operators."""

    def __init__(self, config, tensors, ids, fused):
        self.graph, self.config, self.tensors, self.fused = Graph(), config, tensors, fused
        self.ids, self.heads, self.width = ids, config["num_attention_heads"], config["hidden_size"]

    def norm(self, x, name):
        return self.graph.op("LayerNormalization", x, *self.constants(name, "weight", "bias"), axis=-1,
                             epsilon=self.config["layer_norm_eps"])

    def constants(self, name, *parts):
        return [self.graph.constant(self.tensors[f"{name}.{part}"]) for part in parts]

    def product(self, x, name):
        return self.graph.op("MatMul", x, self.graph.constant(self.tensors[name + ".weight"].T))

    def linear(self, x, name):
        return self.graph.op("Add", self.product(x, name), *self.constants(name, "bias"))

    def residual_norm(self, x, name, residual, norm):
        """norm(linear(x) + residual)"""
        if not self.fused:
            return self.norm(self.graph.op("Add", self.linear(x, name), residual), norm)
        return self.graph.op("SkipLayerNormalization", self.product(x, name), residual,
                             *self.constants(norm, "weight", "bias"), *self.constants(name, "bias"), domain=CONTRIB,
                             epsilon=self.config["layer_norm_eps"])

    def attend(self, x, at):
        graph, names = self.graph, ("query", "key", "value")
        query, key, value = (self.linear(x, f"{at}attention.self.{name}") for name in names)
        if self.fused:
            return graph.op("MultiHeadAttention", query, key, value, domain=CONTRIB, num_heads=self.heads)
        split = graph.ints(0, 0, self.heads, self.width // self.heads)
        query, key, value = (graph.op("Reshape", one, split) for one in (query, key, value))
        query, value = (graph.op("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        scale = graph.constant(numpy.float32(math.sqrt(self.width // self.heads)))
        scores = graph.op("Div", graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 2, 3, 1])), scale)
        seen = graph.op("MatMul", graph.op("Softmax", scores), value)
        return graph.op("Reshape", graph.op("Transpose", seen, perm=[0, 2, 1, 3]), graph.ints(0, 0, self.width))

    def feed_forward(self, x, at):
        name = at + "intermediate.dense"
        if self.fused:
            return self.graph.op("BiasGelu", self.product(x, name), *self.constants(name, "bias"), domain=CONTRIB)
        return self.graph.op("Gelu", self.linear(x, name))

    def model(self):
        graph, table = self.graph, self.tensors
        x = graph.op("Gather", *self.constants("embeddings.word_embeddings", "weight"), graph.input("ids", self.ids))
        places = table["embeddings.position_embeddings.weight"][:self.ids.shape[1]]
        kinds = table["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(graph.op("Add", x, graph.constant(places + kinds)), "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}."
            seen = self.attend(x, at)
            x = self.residual_norm(seen, at + "attention.output.dense", x, at + "attention.output.LayerNorm")
            hidden = self.feed_forward(x, at)
            x = self.residual_norm(hidden, at + "output.dense", x, at + "output.LayerNorm")
        return graph.model(x, 20)


def encoder_model(config, tensors, ids, fused=False):
    return Encoder(config, tensors, ids, fused).model()


def encoder_ways(config, tensors, ids, threads):
    return {name: way_of(session_of(encoder_model(config, tensors, ids, fused), threads), {"ids": ids})
            for name, fused in (("standard graph", False), ("its own operators", True))}
