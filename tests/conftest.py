"""Models for the tests: a random one made on the fly, and the embedded one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlxcel.engine.loading import LoadedModel, load, reference

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Once upon a time, there was a little girl who loved to read.",
    "user assistant system Hello, world! 1, 2, 3, 4, 5",
    'def main():\n    print("hello")\n',
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The embedded model's GGUF file."""
    return reference.embedded()


@pytest.fixture(scope="session")
def smollm2() -> LoadedModel:
    """The embedded model, loaded; takes 3 seconds, so ask for it only where a real model is needed."""
    return load(None)


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLX checkpoint folder: a random two-layer llama, its tokenizer trained on four sentences."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_model_dir: Path) -> LoadedModel:
    """The random llama, loaded; its answers are nonsense and take milliseconds."""
    return load(str(tiny_model_dir))


def write_tiny_model(folder: Path) -> None:
    """Write the checkpoint of ``tiny_model_dir`` into ``folder``."""
    import mlx.core as mx
    from mlx_lm.models import llama

    from mlxcel.engine.loading.parameters import parameters

    n_vocab = _write_tokenizer(folder)
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "vocab_size": n_vocab,
        "max_position_embeddings": 1024,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "eos_token_id": SPECIAL.index("<|im_end|>"),
    }
    (folder / "config.json").write_text(json.dumps(config))
    mx.random.seed(7)
    build: Any = llama
    model = build.Model(build.ModelArgs.from_dict(config))
    # Wide weights keep the best logits apart.
    weights = {path: value * 4 if value.ndim == 2 else value for path, value in parameters(model).items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})


def _write_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(SPECIAL),
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>", "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    count: int = tokenizer.get_vocab_size()
    return count
