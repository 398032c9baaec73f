"""GGUF files become the models they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import mlx.core as mx
import numpy as np
import pytest
from gguf_support import ARGUMENTS, logits, random_model, write_model

from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading import gguf_model, load
from mlxcel.engine.loading.gguf_file import GgufFile
from mlxcel.engine.loading.gguf_weights import packed
from mlxcel.engine.loading.parameters import parameters

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
NATIVE = ("Q4_0", "Q4_1", "Q8_0")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_the_original(tmp_path: Path, architecture: str) -> None:
    model = random_model(architecture)
    loaded = load(str(write_model(tmp_path / "model.gguf", architecture, model)))
    assert np.allclose(logits(loaded.model), logits(model), atol=1e-4)
    assert loaded.info.architecture == architecture
    assert loaded.info.n_params == sum(value.size for value in parameters(model).values())


def test_an_output_layer_of_its_own_is_used(tmp_path: Path) -> None:
    model = random_model("llama", tie_word_embeddings=False)
    loaded = load(str(write_model(tmp_path / "model.gguf", "llama", model))).model
    assert np.allclose(logits(loaded), logits(model), atol=1e-4)
    assert "lm_head.weight" in parameters(loaded)


def test_biases_that_a_file_leaves_out_are_zero(tmp_path: Path) -> None:
    model = random_model("llama", attention_bias=True)
    names = tuple(f"blk.{layer}.attn_output.bias" for layer in range(2))
    loaded = load(str(write_model(tmp_path / "model.gguf", "llama", model, without=names))).model
    assert not np.array(parameters(loaded)["model.layers.1.self_attn.o_proj.bias"]).any()
    assert np.array(parameters(loaded)["model.layers.1.self_attn.q_proj.bias"]).any()


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "Q4_0", "Q4_1", "Q8_0", "Q5_0", "Q5_1"])
def test_every_type_becomes_exactly_what_the_gguf_package_makes_of_it(tmp_path: Path, kind: str) -> None:
    path = write_model(tmp_path / "model.gguf", "qwen3", random_model("qwen3"), kind=kind)
    ours = parameters(load(str(path)).model)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, module in (
        ("token_embd", "model.embed_tokens"),
        ("blk.1.ffn_down", "model.layers.1.mlp.down_proj"),
    ):
        tensor = stored[f"{name}.weight"]
        assert tensor.tensor_type.name == kind
        expected = gguf.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(np.array(ours[f"{module}.weight"]), expected)


@pytest.mark.parametrize("kind", NATIVE)
def test_native_blocks_multiply_like_the_floats_they_stand_for(tmp_path: Path, kind: str) -> None:
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), kind=kind)
    tensor = GgufFile(path).tensors["blk.0.ffn_up.weight"]
    matrix = packed(tensor, mx.float32)
    x = mx.random.normal((3, 64))
    quantized = mx.quantized_matmul(
        x, matrix.weight, matrix.scales, matrix.biases, transpose=True, group_size=32, bits=matrix.bits
    )
    assert np.allclose(np.array(quantized), np.array(x) @ tensor.floats().T, atol=1e-4)


@pytest.mark.parametrize("kind", [*NATIVE, "Q5_0", "F16", "BF16"])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_where_floats_are_not_wanted_blocks_stay_quantized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, architecture: str, kind: str
) -> None:
    path = write_model(tmp_path / "model.gguf", architecture, random_model(architecture), kind=kind)
    wide = logits(load(str(path)).model)
    monkeypatch.setattr(gguf_model, "keep_float32", lambda _: False)
    compact = load(str(path)).model
    up = compact.model.layers[0].mlp.up_proj
    assert hasattr(up, "scales") == (kind in NATIVE)
    assert getattr(up, "bits", None) == (None if kind not in NATIVE else 8 if kind == "Q8_0" else 4)
    assert up.weight.dtype in ((mx.uint32,) if kind in NATIVE else (mx.float16, mx.bfloat16))
    assert np.abs(logits(compact) - wide).max() < 0.05 * np.abs(wide).max()


def test_parts_of_a_split_model_are_read_as_one(tmp_path: Path) -> None:
    model = random_model("llama")
    write_model(tmp_path / "model.gguf", "llama", model, split=7)
    parts = sorted(tmp_path.glob("model-*-of-*.gguf"))
    assert len(parts) > 1
    for part in (parts[0], parts[-1]):
        assert np.allclose(logits(load(str(part)).model), logits(model), atol=1e-4)
    parts[1].unlink()
    with pytest.raises(LoadError, match=rf"part {parts[1].name} of the split model is missing"):
        load(str(parts[0]))


def test_rotary_factors_do_what_llama_3_computes(tmp_path: Path) -> None:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    model = random_model("llama", rope_scaling=scaling)
    frequencies = np.array(model.model.layers[0].self_attn.rope._freqs)
    factors = frequencies / (ARGUMENTS["rope_theta"] ** (np.arange(0, 16, 2) / 16))
    assert factors.max() > 2
    extra = {"rope_freqs.weight": factors.astype(np.float32)}
    loaded = load(str(write_model(tmp_path / "model.gguf", "llama", model, extra=extra))).model
    assert np.allclose(logits(loaded), logits(model), atol=1e-4)
    assert not np.allclose(logits(loaded), logits(random_model("llama")), atol=1e-2)


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_rotary_scaling_is_taken_from_metadata(tmp_path: Path, kind: str) -> None:
    scaling = {"type": kind, "factor": 4.0, "original_max_position_embeddings": 128}
    model = random_model("qwen3", rope_scaling=scaling)
    metadata = {
        "qwen3.rope.scaling.type": kind,
        "qwen3.rope.scaling.factor": 4.0,
        "qwen3.rope.scaling.original_context_length": 128,
    }
    loaded = load(str(write_model(tmp_path / "model.gguf", "qwen3", model, metadata=metadata))).model
    assert np.allclose(logits(loaded), logits(model), atol=1e-4)
    assert not np.allclose(logits(loaded), logits(random_model("qwen3")), atol=1e-2)


def test_what_another_thread_needs_is_computed(tmp_path: Path) -> None:
    from threading import Thread

    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
    metadata = {
        "qwen3.rope.scaling.type": "yarn",
        "qwen3.rope.scaling.factor": 4.0,
        "qwen3.rope.scaling.original_context_length": 128,
    }
    model = random_model("qwen3", rope_scaling=scaling)
    loaded = load(str(write_model(tmp_path / "model.gguf", "qwen3", model, metadata=metadata))).model
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(logits(loaded)))
    thread.start()
    thread.join()
    assert found, "the model holds values that only the loading thread can compute"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"llama.expert_count": 8}, "mixtures of experts are not supported"),
        ({"llama.attention.head_count": None}, "'llama.attention.head_count' is missing"),
        ({"llama.attention.head_count": 0}, "head_count 0 is not supported"),
        ({"llama.attention.head_count_kv": [1, 2]}, "head_count_kv differing from layer to layer"),
        ({"llama.rope.dimension_count": 8}, "rotating 8 of a head's 16 elements"),
        (
            {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 4.0},
            "rotary scaling 'longrope' is not supported",
        ),
        ({"llama.block_count": 3}, "tensors don't fit a llama model"),
        ({"tokenizer.ggml.pre": "klingon"}, "pre-tokenizer 'klingon' is not supported"),
        ({"tokenizer.ggml.model": "bert"}, "tokenizer model 'bert' is not supported"),
        ({"tokenizer.ggml.merges": None}, "'tokenizer.ggml.merges' is missing"),
        ({"tokenizer.ggml.merges": ["he"]}, "the vocabulary is damaged"),
        ({"tokenizer.ggml.token_type": [1]}, "'tokenizer.ggml.token_type' is too short"),
    ],
)
def test_metadata_that_cannot_be_honoured_is_refused(
    tmp_path: Path, metadata: dict[str, Any], message: str
) -> None:
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), metadata=metadata)
    with pytest.raises(LoadError) as caught:
        load(str(path))
    assert "model.gguf: " in caught.value.message
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_an_unknown_architecture_is_named_with_the_known_ones(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", "mamba", random_model("llama"))
    with pytest.raises(
        LoadError, match=r"model\.gguf: architecture 'mamba' is not supported \(known: gemma3, llama"
    ):
        load(str(path))


@pytest.mark.parametrize(
    ("extra", "without", "message"),
    [
        (
            {"blk.0.attn_sinks.weight": np.ones(4, np.float32)},
            (),
            "unexpected tensor 'blk.0.attn_sinks.weight'",
        ),
        ({"rope_freqs.weight": np.ones(3, np.float32)}, (), "'rope_freqs.weight' must have 8 values"),
        ({}, ("token_embd.weight",), "'token_embd.weight' is missing"),
        ({}, ("blk.1.ffn_up.weight",), "tensors don't fit a llama model"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    tmp_path: Path, extra: dict[str, Any], without: tuple[str, ...], message: str
) -> None:
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), extra=extra, without=without)
    with pytest.raises(LoadError) as caught:
        load(str(path))
    assert message in caught.value.message
