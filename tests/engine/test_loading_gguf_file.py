"""What a GGUF file holds is read as it was written, and a damaged one ends in one clear line."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf_support import random_model, write_model

from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading import load
from mlxcel.engine.loading.file_type import file_type
from mlxcel.engine.loading.gguf_file import GgufFile


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("gguf") / "model.gguf", "llama", random_model("llama"))


def test_values_of_every_type_are_read(tmp_path: Path) -> None:
    path = tmp_path / "values.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    values = {
        "uint8": 200,
        "int8": -100,
        "uint16": 60_000,
        "int16": -30_000,
        "uint32": 4_000_000_000,
        "int32": -2_000_000_000,
        "float32": 0.5,
        "bool": True,
        "string": "naïve 🎉",
        "uint64": 2**63,
        "int64": -(2**62),
        "float64": 0.1,
        "array": [[1, 2], [3]],
    }
    for name, value in values.items():
        getattr(writer, f"add_{name}")(name, value)
    writer.add_array("strings", ["a", "", "▁b"])
    writer.add_array("floats", [0.5, -2.0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    file = GgufFile(path)
    assert {name: file.get(name) for name in values} == values
    assert file.get("strings") == ["a", "", "▁b"]
    assert file.get("floats") == [0.5, -2.0]
    assert file.get("absent", 3) == 3


def test_tensors_are_those_of_the_gguf_package(model_file: Path) -> None:
    ours = GgufFile(model_file).tensors
    theirs = gguf.GGUFReader(model_file).tensors
    assert list(ours) == [tensor.name for tensor in theirs]
    for tensor in theirs:
        assert ours[tensor.name].shape == tuple(int(n) for n in reversed(tensor.shape))
        assert np.array_equal(ours[tensor.name].floats(), tensor.data)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "all F32"), (1, "F16"), (3, "Q4_1"), (15, "Q4_K - Medium"), (18, "Q6_K"), (30, "IQ4_XS - 4.25 bpw")],
)
def test_the_file_type_has_the_name_that_the_reference_gives(tmp_path: Path, number: int, text: str) -> None:
    metadata = {"general.file_type": number}
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), metadata=metadata)
    assert file_type(GgufFile(path)) == text


def test_a_missing_file_type_is_guessed_from_most_tensors(tmp_path: Path, model_file: Path) -> None:
    assert file_type(GgufFile(model_file)) == "(guessed) all F32"
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), kind="Q8_0")
    assert file_type(GgufFile(path)) == "(guessed) Q8_0"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a GGUF file (it is empty)"),
        (b"PK\x03\x04 and so on", "not a GGUF file (it begins with b'PK\\x03\\x04')"),
        (b"GGUF", "the file is damaged or cut off; download it again"),
        (b"GGUF" + struct.pack("<I", 1), "GGUF version 1 is not supported"),
        (b"GGUF" + struct.pack(">I", 3), "GGUF version 50331648 is not supported"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60), "the file is damaged or cut off"),
    ],
)
def test_what_is_no_gguf_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=re.escape(f"model.gguf: {message}")) as caught:
        load(str(path))
    assert "\n" not in caught.value.message


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"[Ii]s a directory"):
        GgufFile(tmp_path)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, model_file: Path) -> None:
    whole = model_file.read_bytes()
    path = tmp_path / "model.gguf"
    for size in [*range(4, 4000, 97), len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(LoadError, match=r"cut off.*download it again"):
            GgufFile(path)


def test_damage_anywhere_in_the_header_never_ends_in_another_error(tmp_path: Path, model_file: Path) -> None:
    whole = model_file.read_bytes()
    path = tmp_path / "model.gguf"
    dice = random.Random(11)
    messages = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 2, 5))):
            damaged[dice.randrange(4, 3700)] = dice.choice((0, 1, 127, 255, dice.randrange(256)))
        path.write_bytes(damaged)
        try:
            load(str(path))
        except LoadError as error:
            messages.append(error.message)
    assert len(messages) > 50
    assert not any("\n" in message for message in messages)


def test_an_unknown_tensor_type_is_named(tmp_path: Path, model_file: Path) -> None:
    whole = model_file.read_bytes()
    # Behind the name: the number of dimensions, two sizes, the type.
    at = whole.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 16
    path = tmp_path / "model.gguf"
    path.write_bytes(whole[:at] + struct.pack("<I", 99) + whole[at + 4 :])
    with pytest.raises(LoadError, match=r"tensor 'token_embd\.weight' has the unknown type 99; requantize"):
        load(str(path))


def test_a_type_that_cannot_be_dequantized_is_named(tmp_path: Path, model_file: Path) -> None:
    whole = model_file.read_bytes()
    at = whole.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 16
    path = tmp_path / "model.gguf"
    kind = gguf.GGMLQuantizationType.I32
    path.write_bytes(whole[:at] + struct.pack("<I", kind) + whole[at + 4 :])
    with pytest.raises(LoadError, match="tensors of type I32 are not supported; requantize the model"):
        load(str(path))
