"""The embedded model: its facts, its weights, and the recorded greedy answers token for token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlxcel.engine.loading import LoadedModel
from mlxcel.engine.loading.gguf_file import GgufFile
from mlxcel.engine.loading.parameters import parameters

CAPTURES = Path(__file__).parents[1] / "reference" / "captures"


def greedy(model: Any, tokens: list[int], n: int) -> list[int]:
    """The ``n`` likeliest next tokens, one at a time, through mlx-lm's own cache."""
    from mlx_lm.models.cache import make_prompt_cache

    cache, found, step = make_prompt_cache(model), [], tokens
    for _ in range(n):
        found.append(int(np.array(model(mx.array([step]), cache)[0, -1]).argmax()))
        step = found[-1:]
    return found


def test_facts_are_those_that_the_reference_reports(smollm2: LoadedModel, smollm2_path: Path) -> None:
    cases = json.loads((CAPTURES / "openai.json").read_text())
    [meta] = [
        case["answer"]["json"]["data"][0]["meta"] for case in cases if case["request"]["name"] == "models"
    ]
    info = smollm2.info
    for name in ("n_vocab", "n_ctx_train", "n_embd", "n_params"):
        assert getattr(info, name) == meta[name], name
    assert info.n_params == 134_515_008
    assert (info.architecture, info.file_type, info.vocab_type) == ("llama", "Q4_1", 2)
    assert info.path == str(smollm2_path)
    # The recorded model is this one, widened; the size is that of the tensors as they are stored.
    assert 0.9 * smollm2_path.stat().st_size < info.size < smollm2_path.stat().st_size
    assert "<|im_start|>" in (smollm2.chat_template_source or "")


def test_weights_are_float32_bit_for_bit(smollm2: LoadedModel, smollm2_path: Path) -> None:
    file, ours = GgufFile(smollm2_path), parameters(smollm2.model)
    assert sum(value.size for value in ours.values()) == smollm2.info.n_params
    assert {value.dtype for value in ours.values()} == {mx.float32}
    for name, path in (
        ("blk.0.attn_q", "model.layers.0.self_attn.q_proj"),
        ("blk.29.ffn_down", "model.layers.29.mlp.down_proj"),
        ("output_norm", "model.norm"),
    ):
        tensor = file.tensors[f"{name}.weight"]
        expected = tensor.floats()
        if tensor.kind.name == "Q4_1":
            # The definition, in plain arithmetic: scale * integer + minimum, every step in float32.
            blocks = tensor.data.reshape(-1, 20)
            scale, minimum = (
                blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32) for at in (0, 2)
            )
            integers = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1).astype(np.float32)
            assert np.array_equal((scale * integers + minimum).reshape(expected.shape), expected)
        assert np.array_equal(np.array(ours[f"{path}.weight"]), expected)


@pytest.mark.parametrize("name", ["return-tokens", "unicode-prompt", "special-in-prompt"])
def test_greedy_tokens_are_the_recorded_ones(smollm2: LoadedModel, name: str) -> None:
    cases = json.loads((CAPTURES / "completion.json").read_text())
    [case] = [case for case in cases if case["request"]["name"] == name]
    tokens = smollm2.tokenizer.encode(case["request"]["body"]["prompt"], add_special=True, parse_special=True)
    expected = case["answer"]["json"]["tokens"]
    assert len(expected) > 5
    assert greedy(smollm2.model, tokens, len(expected)) == expected
