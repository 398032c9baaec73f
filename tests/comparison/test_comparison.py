"""The parts of the comparison that need no reference server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from mlxcel.engine.loading.gguf_file import GgufFile
from tests.conformance.recorded import LATER

from .llama import running
from .rules import Compared, Reply, compare_case
from .table import line, row, total
from .weights import float32_copy

REQUEST = {"name": "some", "path": "/completion", "body": {"prompt": "a"}}


def answered(body: Any, *, status: int = 200, seconds: float = 0.1) -> Reply:
    return Reply({"status": status, "content_type": "application/json", "json": body}, seconds)


def compared(ours: Reply, *, name: str = "file/some", deviation: dict[str, Any] | None = None) -> Compared:
    reference = answered({"content": "b", "prob": 0.5, "timings": {"prompt_ms": 3.0}, "cache_n": 7})
    return compare_case(name, {"request": REQUEST}, reference, ours, {name: deviation} if deviation else {})


def test_clocks_caches_and_small_errors_are_no_difference() -> None:
    ours = answered({"content": "b", "prob": 0.5005, "timings": {"prompt_ms": 9.0}, "cache_n": 1})
    assert compared(ours).verdict == "agrees"


def test_the_first_difference_is_named() -> None:
    found = compared(answered({"content": "c", "prob": 0.5, "timings": {"prompt_ms": 3.0}, "cache_n": 7}))
    assert (found.verdict, found.difference) == ("differs", "$.content: 'c' is not 'b'")


@pytest.mark.parametrize(("listed", "verdict"), [(400, "deviates"), (422, "differs")])
def test_only_the_listed_deviation_is_deliberate(listed: int, verdict: str) -> None:
    refused = answered({"error": {"code": 400, "type": "invalid_request_error", "message": "no"}}, status=400)
    found = compared(refused, deviation={"status": listed})
    assert found.verdict == verdict
    assert "status 400, not" in (found.difference or "")


def test_a_case_known_to_differ_is_marked() -> None:
    assert compared(answered({}), name=min(LATER)).verdict == "known"


def test_no_answer_is_a_difference() -> None:
    lost = Reply({}, 0.1, "ConnectionResetError: gone")
    assert compared(lost).difference == "ConnectionResetError: gone"
    assert compare_case("file/some", {"request": REQUEST}, lost, lost, {}).verdict == "differs"


def test_the_table_counts_and_takes_medians_of_what_agrees() -> None:
    same = answered({"content": "b", "prob": 0.5, "timings": {"prompt_ms": 3.0}, "cache_n": 7}, seconds=0.25)
    cases = [compared(same), compared(same), compared(answered({}, status=500, seconds=9.0))]
    assert row(cases) == ("3", "2", "0", "0", "1", "100.0", "250.0", "2.50")
    assert row(cases[2:]) == ("1", "0", "0", "0", "1", "-", "-", "-")
    assert total(cases).startswith("total: 2 of 3 agree")
    shown = "file/some 200 500 100.0 9000.0 ms DIFFERS: status 500, not 200"
    assert " ".join(line(cases[2]).split()) == shown


def test_a_copy_has_the_loaders_floats_and_all_metadata(tmp_path: Path) -> None:
    source = GgufFile(quantized(tmp_path / "small.gguf"))
    copy = GgufFile(float32_copy(source.path, tmp_path / "copy" / "small.f32.gguf"))
    assert {tensor.kind.name for tensor in copy.tensors.values()} == {"F32"}
    for name, tensor in source.tensors.items():
        assert np.array_equal(copy.floats(name), tensor.floats())
    for key in ("general.architecture", "llama.block_count", "tokenizer.ggml.tokens", "flag"):
        assert copy.require(key) == source.require(key)
    assert (source.require("general.file_type"), copy.require("general.file_type")) == (3, 0)


def quantized(path: Path) -> Path:
    """A small file with a tensor in blocks and one of floats."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_file_type(3)
    writer.add_array("tokenizer.ggml.tokens", ["a", "ü"])
    writer.add_bool("flag", True)
    values = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    kind = gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor("matrix", gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("norm", values[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_server_that_does_not_start_shows_its_last_lines(tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\nprint('no such model'); exit(3)\n")
    script.chmod(0o755)
    with (
        pytest.raises(RuntimeError, match=r"ended with status 3:\nno such model"),
        running([str(script)], tmp_path / "log"),
    ):
        pass
