"""MLX checkpoint folders: weights, quantized or not, tokenizers, templates, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from gguf_support import logits, random_model
from mlx.nn.layers.quantized import quantize

from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading import folder as folder_module
from mlxcel.engine.loading import load
from mlxcel.engine.loading.parameters import parameters


@pytest.fixture
def folder(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A copy of the tiny checkpoint to spoil."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "copy"))


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file, which may not be there yet."""
    value = json.loads(path.read_text()) if path.exists() else {}
    change(value)
    path.write_text(json.dumps(value))


def write_weights(folder: Path, model: Any, **config: Any) -> None:
    """Replace the checkpoint's weights and the config's entries."""
    mx.save_safetensors(str(folder / "model.safetensors"), parameters(model), {"format": "mlx"})
    arguments = {k: v for k, v in vars(model.args).items() if isinstance(v, int | float | str | bool)}
    (folder / "config.json").write_text(json.dumps(arguments | config))


def test_facts_of_a_folder(tiny_model_dir: Path) -> None:
    info = load(str(tiny_model_dir)).info
    config = json.loads((tiny_model_dir / "config.json").read_text())
    assert info.path == str(tiny_model_dir)
    assert info.name == tiny_model_dir.name
    assert (info.architecture, info.file_type, info.vocab_type) == ("llama", "float32", 2)
    assert (info.n_vocab, info.n_ctx_train, info.n_embd) == (config["vocab_size"], 1024, 64)
    assert info.size == (tiny_model_dir / "model.safetensors").stat().st_size
    # Embedding, then per layer: attention, feed-forward, norms; the last norm.
    assert (
        info.n_params
        == config["vocab_size"] * 64 + 2 * (64 * (64 + 32 + 32 + 64) + 3 * 64 * 128 + 2 * 64) + 64
    )


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma3"])
def test_weights_are_those_of_the_folder(folder: Path, architecture: str) -> None:
    model = random_model(architecture, vocab_size=373)
    kind = "gemma3_text" if architecture == "gemma3" else architecture
    write_weights(folder, model, model_type=kind)
    assert np.allclose(logits(load(str(folder)).model), logits(model), atol=1e-5)


def test_a_mistral_is_a_llama(folder: Path) -> None:
    model = random_model("llama", vocab_size=373)
    write_weights(folder, model, model_type="mistral")
    loaded = load(str(folder))
    assert np.allclose(logits(loaded.model), logits(model), atol=1e-5)
    assert loaded.info.architecture == "mistral"


@pytest.mark.parametrize("bits", [4, 8])
def test_quantized_weights_are_widened_where_float32_is_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    model = random_model("llama", vocab_size=373)
    n_params = sum(value.size for value in parameters(model).values())
    model.set_dtype(mx.bfloat16)
    quantize(model, group_size=32, bits=bits)
    write_weights(folder, model, quantization={"group_size": 32, "bits": bits})
    wide = load(str(folder))
    assert {value.dtype for value in parameters(wide.model).values()} == {mx.float32}
    assert wide.info.file_type == f"{bits}-bit"
    assert wide.info.n_params == n_params
    model.set_dtype(mx.float32)
    assert np.allclose(logits(wide.model), logits(model), atol=1e-3)

    monkeypatch.setattr(folder_module, "keep_float32", lambda _: False)
    compact = load(str(folder))
    assert parameters(compact.model)["model.layers.0.mlp.up_proj.weight"].dtype == mx.uint32
    assert compact.info.n_params == n_params


def test_the_end_of_generation_comes_from_every_config(folder: Path) -> None:
    assert load(str(folder)).tokenizer.eog_ids == {0, 2}
    edit(folder / "config.json", lambda value: value.update(eos_token_id=9))
    assert load(str(folder)).tokenizer.eog_ids == {0, 2, 9}
    edit(folder / "generation_config.json", lambda value: value.update(eos_token_id=[7, 8]))
    assert load(str(folder)).tokenizer.eog_ids == {0, 2, 7, 8}


def test_the_template_in_a_file_of_its_own_wins(folder: Path) -> None:
    assert "<|im_start|>" in (load(str(folder)).chat_template_source or "")
    (folder / "chat_template.jinja").write_text("{{ 'ours' }}")
    assert load(str(folder)).chat_template_source == "{{ 'ours' }}"


def test_of_several_templates_the_default_is_taken(folder: Path) -> None:
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]
    edit(folder / "tokenizer_config.json", lambda value: value.update(chat_template=named))
    assert load(str(folder)).chat_template_source == "yes"
    edit(folder / "tokenizer_config.json", lambda value: value.pop("chat_template"))
    assert load(str(folder)).chat_template_source is None


def test_what_is_put_around_a_text_is_found_and_can_be_switched(folder: Path) -> None:
    encode = {"add_special": True, "parse_special": True}
    plain = load(str(folder)).tokenizer.encode("The fox", **encode)
    assert not load(str(folder)).tokenizer.add_bos

    edit(folder / "tokenizer_config.json", lambda value: value.update(add_bos_token=True, add_eos_token=True))
    switched = load(str(folder)).tokenizer
    assert switched.encode("The fox", **encode) == [0, *plain, 2]
    assert (switched.add_bos, switched.add_eos) == (True, True)

    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<|im_start|>"]}},
    }
    edit(folder / "tokenizer.json", lambda value: value.update(post_processor=template))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    found = load(str(folder)).tokenizer
    assert found.encode("The fox", **encode) == [1, *plain]
    assert (found.bos_id, found.bos_token, found.add_bos) == (1, "<|im_start|>", True)

    edit(folder / "tokenizer_config.json", lambda value: value.update(add_bos_token=False))
    assert load(str(folder)).tokenizer.encode("The fox", **encode) == plain


def test_truncation_and_padding_of_training_are_off(folder: Path) -> None:
    truncation = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    edit(folder / "tokenizer.json", lambda value: value.update(truncation=truncation))
    tokenizer = load(str(folder)).tokenizer
    assert len(tokenizer.encode("The quick brown fox " * 9, add_special=True, parse_special=True)) > 30


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json: no such file"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: can't be read as JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json: must hold a JSON object"),
        (
            lambda folder: edit(folder / "config.json", lambda value: value.update(model_type="mamba")),
            "model type 'mamba' is not supported (known: gemma3,",
        ),
        (
            lambda folder: edit(folder / "config.json", lambda value: value.pop("hidden_size")),
            "the checkpoint can't be loaded: ",
        ),
        (
            lambda folder: edit(folder / "config.json", lambda value: value.update(model_file="evil.py")),
            "the checkpoint can't be loaded: ",
        ),
        (
            lambda folder: edit(folder / "config.json", lambda value: value.update(intermediate_size=96)),
            "the checkpoint can't be loaded: ",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model*.safetensors in the folder"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 50),
            "the checkpoint can't be loaded: ",
        ),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json: no such file"),
        (
            lambda folder: (folder / "tokenizer.json").write_text("{}"),
            "tokenizer.json: can't be read as a tokenizer",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_line(
    folder: Path, spoil: Callable[[Path], object], message: str
) -> None:
    spoil(folder)
    with pytest.raises(LoadError) as caught:
        load(str(folder))
    assert message in caught.value.message
    assert str(folder) in caught.value.message
    assert "\n" not in caught.value.message


def test_weights_cut_off_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(LoadError, match=r"the checkpoint can't be loaded"):
        load(str(folder))
