"""The embedded model as llama-server is given it: the same GGUF with every tensor as float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

FILE_TYPE = "general.file_type"
ALL_FLOAT32 = 0


def float32_copy(source: Path, target: Path) -> Path:
    """Write the GGUF ``source`` to ``target`` with dequantized tensors, unless it is there already."""
    if target.exists():
        return target
    print(f"writing {target}", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    write(gguf.GGUFReader(source), unfinished)
    return unfinished.rename(target)


def write(reader: Any, target: Path) -> None:
    """Write all that ``reader``, a ``GGUFReader``, holds to ``target``, its tensors as float32."""
    architecture = reader.get_field(gguf.Keys.General.ARCHITECTURE).contents()
    writer = gguf.GGUFWriter(target, architecture)
    writer.data_alignment = int(reader.alignment)
    _copy_metadata(reader, writer)
    for tensor in reader.tensors:
        shape = tuple(reversed(tensor.shape.tolist()))
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), 4 * int(tensor.n_elements))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        floats = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(np.ascontiguousarray(floats, np.float32))
    writer.close()


def _copy_metadata(reader: Any, writer: Any) -> None:
    for field in reader.fields.values():
        # The reader shows the header's counts as fields; the writer has written the architecture.
        if field.name.startswith("GGUF.") or field.name in {gguf.Keys.General.ARCHITECTURE, FILE_TYPE}:
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    writer.add_file_type(ALL_FLOAT32)
