"""Metadata and tensors of a GGUF model, which may be split over several files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from ..errors import LoadError

SPLIT = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")


class GgufFile:
    """A GGUF model, memory-mapped.

    Raises:
        LoadError: a file is missing, cut off, or no GGUF.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self._readers = [_open(part) for part in _parts(path)]
        self._values: dict[str, Any] = {}
        self.tensors: dict[str, gguf.ReaderTensor] = {
            tensor.name: tensor for reader in self._readers for tensor in reader.tensors
        }

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a metadata key."""
        if key not in self._values:
            field = self._readers[0].get_field(key)
            self._values[key] = None if field is None else field.contents()
        value = self._values[key]
        return default if value is None else value

    def require(self, key: str) -> Any:
        """The value of a metadata key that must be there."""
        value = self.get(key)
        if value is None:
            raise LoadError(f"{self.name}: metadata key '{key}' is missing; convert the model again")
        return value

    @property
    def architecture(self) -> str:
        return str(self.require("general.architecture"))

    def hyperparameter(self, key: str, default: Any = None) -> Any:
        """A value of the architecture's own part of the metadata."""
        return self.get(f"{self.architecture}.{key}", default)

    def floats(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor as float32, row-major, in the order of its GGUF shape reversed (rows first)."""
        tensor = self.tensors[name]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        try:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError:
            kind = tensor.tensor_type.name
            raise LoadError(f"{self.name}: tensors of type {kind} are not supported; requantize the model") from None
        return np.ascontiguousarray(values.reshape(shape), np.float32)

    def kinds(self) -> Iterator[tuple[str, int]]:
        """Each tensor's quantization type and number of scalars."""
        for tensor in self.tensors.values():
            yield tensor.tensor_type.name, int(np.prod(tensor.shape))

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(int(tensor.n_bytes) for tensor in self.tensors.values())


def _parts(path: Path) -> list[Path]:
    split = SPLIT.fullmatch(path.name)
    if split is None:
        return [path]
    count = int(split["count"])
    parts = [path.with_name(f"{split['stem']}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]
    missing = [part.name for part in parts if not part.exists()]
    if missing:
        raise LoadError(f"{path.name}: part {missing[0]} of the split model is missing beside it")
    return parts


def _open(path: Path) -> gguf.GGUFReader:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic != b"GGUF":
            raise LoadError(f"{path.name}: not a GGUF file (it begins with {magic!r})")
        reader = gguf.GGUFReader(path)
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror or error}") from None
    except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError, TypeError, MemoryError):
        raise LoadError(f"{path.name}: the file is damaged or cut off; download it again") from None
    size = path.stat().st_size
    if any(tensor.data_offset + tensor.n_bytes > size for tensor in reader.tensors):
        raise LoadError(f"{path.name}: the file is cut off at {size} bytes; download it again")
    return reader
