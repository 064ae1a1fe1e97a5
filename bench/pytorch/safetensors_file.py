"""Reads and writes safetensors files with numpy alone, so that the comparisons need no package beyond PyTorch's own.

The format: 8 bytes little-endian length of the header, the header as JSON {name: {dtype, shape, data_offsets}}, then the
tensors' bytes in row-major order; the offsets count from the end of the header.
"""

import json

import numpy as np

_NUMPY_OF = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_NAME_OF = {np.dtype(numpy): name for name, numpy in _NUMPY_OF.items()}


def read_safetensors(path):
    """Returns {name: array} in the order of the file's header; raises ValueError where the file is damaged."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError(f"{path}: {len(data)} bytes are too few for its header of {length} bytes")
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype = np.dtype(_NUMPY_OF[entry["dtype"]])
        begin, end = entry["data_offsets"]
        if end > len(body) or end - begin != dtype.itemsize * int(np.prod(entry["shape"], dtype=np.int64)):
            raise ValueError(f"{path}: tensor {name} of shape {entry['shape']} does not fit bytes {begin} to {end}")
        tensors[name] = np.frombuffer(body[begin:end], dtype).reshape(entry["shape"]).copy()
    return tensors


def write_safetensors(path, tensors):
    """Writes {name: array} to path, in the order given."""
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": _NAME_OF[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the tensors start at a multiple of 8, as the format advises
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
