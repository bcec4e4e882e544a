# SPDX-License-Identifier: Apache-2.0
"""Reads a safetensors file with nothing but the standard library and prints what is in it as JSON.

python3 read_plain_safetensors.py FILE
"""

import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    content = file.read()
(header_bytes,) = struct.unpack("<Q", content[:8])
header = json.loads(content[8 : 8 + header_bytes])
data = content[8 + header_bytes :]
tensors = {}
for name, entry in header.items():
    if name == "__metadata__":
        continue
    assert entry["dtype"] == "F32", entry
    begin, end = entry["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    tensors[name] = {"shape": entry["shape"], "values": values}
print(json.dumps({"metadata": header["__metadata__"], "tensors": tensors}))
