#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file anew with its matrices in BF16; everything else stays as it is.

    convert_bf16.py FROM.gguf TO.gguf

Needs the gguf package, which requirements.txt names.
"""
import pathlib
import sys

import gguf
import numpy

KEPT = {"general.architecture", "GGUF.version", "GGUF.tensor_count", "GGUF.kv_count"}  # the writer writes these itself


def rounded(values):
    """To bfloat16 as its bits, ties to even."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)


def copy_metadata(reader, writer):
    for name, field in reader.fields.items():
        if name in KEPT:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        if name == "general.file_type":
            value = int(gguf.LlamaFileType.MOSTLY_BF16)
        writer.add_key_value(name, value, kind, sub_type=inner)


def convert(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if values.ndim < 2:
            writer.add_tensor(tensor.name, values.astype(numpy.float32))
        else:
            writer.add_tensor(tensor.name, rounded(values).view(numpy.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    convert(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
