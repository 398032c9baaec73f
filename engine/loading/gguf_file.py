"""Metadata and tensors of a GGUF model, which may be split over several files.

The ``gguf`` package can read these files too, but it makes an array of every string: opening a model with a
large vocabulary takes it 20 seconds. What it knows of quantization types is used here.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from ..errors import LoadError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
MAX_DIMENSIONS = 4

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""``struct`` codes by the number of a value's type."""
STRING, ARRAY = 8, 9

SPLIT = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A stored tensor: ``shape`` has rows first; ``data`` is the memory-mapped file, in bytes."""

    name: str
    kind: gguf.GGMLQuantizationType
    shape: tuple[int, ...]
    data: npt.NDArray[np.uint8]

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    def floats(self) -> npt.NDArray[np.float32]:
        """The values, dequantized.

        Raises:
            NotImplementedError: values of this type can't be dequantized.
        """
        rows = self.data.reshape(*self.shape[:-1], -1)
        return np.ascontiguousarray(gguf.dequantize(rows, self.kind), np.float32).reshape(self.shape)


class GgufFile:
    """A GGUF model, memory-mapped.

    Args:
        path: the file, or any one of the parts of a split model.

    Raises:
        LoadError: a file is missing, cut off, or no GGUF.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.tensors: dict[str, Tensor] = {}
        parts = [_Part(part) for part in _parts(path)]
        self._values = parts[0].values
        for part in parts:
            self.tensors |= {tensor.name: tensor for tensor in part.tensors}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a metadata key."""
        return self._values.get(key, default)

    def require(self, key: str) -> Any:
        """The value of a metadata key that must be there.

        Raises:
            LoadError: it isn't.
        """
        if key not in self._values:
            raise LoadError(f"{self.name}: metadata key '{key}' is missing; convert the model again")
        return self._values[key]

    @property
    def architecture(self) -> str:
        """The family of models, such as ``llama``."""
        return str(self.require("general.architecture"))

    def hyperparameter(self, key: str, default: Any = None) -> Any:
        """A value of the architecture's own part of the metadata."""
        return self.get(f"{self.architecture}.{key}", default)

    def require_hyperparameter(self, key: str) -> Any:
        """A value of the architecture's own part of the metadata that must be there."""
        return self.require(f"{self.architecture}.{key}")

    def floats(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor's values as float32, rows first.

        Raises:
            LoadError: values of its type can't be dequantized.
        """
        tensor = self.tensors[name]
        try:
            return tensor.floats()
        except NotImplementedError:
            raise LoadError(
                f"{self.name}: tensors of type {tensor.kind.name} are not supported; requantize the model"
            ) from None

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.data.nbytes for tensor in self.tensors.values())

    @property
    def n_params(self) -> int:
        """Scalars in all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())


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


class _Part:
    """One file: its values and tensors."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._bytes = self._mapped(path)
        self._at = len(MAGIC)
        try:
            self.values, self.tensors = self._read()
        except (struct.error, IndexError, ValueError, OverflowError, RecursionError):
            raise LoadError(f"{self._name}: the file is damaged or cut off; download it again") from None

    def _mapped(self, path: Path) -> memoryview:
        try:
            with path.open("rb") as file:
                start = file.read(len(MAGIC))
                if start != MAGIC:
                    what = f"it begins with {start!r}" if start else "it is empty"
                    raise LoadError(f"{self._name}: not a GGUF file ({what})")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise LoadError(f"{path}: {error.strerror or error}") from None

    def _read(self) -> tuple[dict[str, Any], list[Tensor]]:
        version = self._scalar("I")
        if version not in VERSIONS:
            raise LoadError(f"{self._name}: GGUF version {version} is not supported; convert the model again")
        n_tensors, n_values = self._scalar("Q"), self._scalar("Q")
        values: dict[str, Any] = {}
        for _ in range(n_values):
            key = self._string()
            values[key] = self._value(self._scalar("I"))
        headers = [self._tensor_header() for _ in range(n_tensors)]
        alignment = int(values.get("general.alignment", ALIGNMENT))
        start = -(-self._at // alignment) * alignment
        return values, [self._tensor(start, *header) for header in headers]

    def _scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._bytes, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _string(self) -> str:
        length: int = self._scalar("Q")
        end = self._at + length
        if end > len(self._bytes):
            raise ValueError("a string reaches behind the end")
        text = str(self._bytes[self._at : end], "utf-8", "replace")
        self._at = end
        return text

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array(self._scalar("I"), self._scalar("Q"))
        return self._scalar(_code(kind))

    def _array(self, kind: int, length: int) -> list[Any]:
        # Every element takes a byte at least, so a damaged length is found before memory is asked for.
        if length > len(self._bytes) - self._at:
            raise ValueError("an array reaches behind the end")
        if kind in (STRING, ARRAY):
            return [self._value(kind) for _ in range(length)]
        code = f"<{length}{_code(kind)}"
        values = struct.unpack_from(code, self._bytes, self._at)
        self._at += struct.calcsize(code)
        return list(values)

    def _tensor_header(self) -> tuple[str, tuple[int, ...], int, int]:
        name, n_dimensions = self._string(), self._scalar("I")
        if not 0 < n_dimensions <= MAX_DIMENSIONS:
            raise ValueError("a tensor has too many dimensions")
        shape = tuple(self._scalar("Q") for _ in range(n_dimensions))
        return name, shape[::-1], self._scalar("I"), self._scalar("Q")

    def _tensor(self, start: int, name: str, shape: tuple[int, ...], type_number: int, offset: int) -> Tensor:
        try:
            kind = gguf.GGMLQuantizationType(type_number)
        except ValueError:
            raise LoadError(
                f"{self._name}: tensor '{name}' has the unknown type {type_number}; requantize the model"
            ) from None
        block_size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        if shape[-1] % block_size:
            raise ValueError("a row isn't a whole number of blocks")
        start += offset
        end = start + math.prod(shape) // block_size * block_bytes
        if end > len(self._bytes):
            raise LoadError(
                f"{self._name}: the file is cut off at {len(self._bytes)} bytes, "
                f"tensor '{name}' ends at {end}; download it again"
            )
        return Tensor(name, kind, shape, np.frombuffer(self._bytes[start:end], np.uint8))


def _code(kind: int) -> str:
    if kind not in SCALARS:
        raise ValueError("a value has an unknown type")
    return SCALARS[kind]
