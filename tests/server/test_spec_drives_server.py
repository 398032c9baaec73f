"""The spec decides: an edit in a copy of specs/, compiled, changes what the server does. Nothing else is touched."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from codegen.pipeline import compile_specs
from mlxcel.engine.engine import Engine
from mlxcel.engine.loading import LoadedModel
from mlxcel.handlers.native.errors import NativeError
from mlxcel.server.main import engine_options, make_context
from mlxcel.server.options import parse
from mlxcel.server.runtime import Runtime
from mlxcel.server.surface import build_surface

SPECS = Path(__file__).parents[2] / "specs"

Edit = tuple[str, str, str]
"""File, text in it, and what stands there instead."""

Ask = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def engine(tiny_model: LoadedModel) -> Iterator[Engine]:
    running = Engine(tiny_model, engine_options(parse(["-np", "1"], {})))
    running.start()
    yield running
    running.stop()


def compiled(folder: Path, edits: list[Edit]) -> dict[str, str]:
    copy = folder / "specs"
    copy.mkdir()
    texts = {file.name: file.read_text() for file in SPECS.iterdir()}
    for name, old, new in edits:
        assert texts[name].count(old) == 1, f"{old!r} must stand once in {name}"
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        (copy / name).write_text(text)
    return compile_specs(copy, None)


def module(name: str, source: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def server_of(tmp_path: Path, engine: Engine) -> Callable[..., Ask]:
    """A function that answers /completion as a server of edited specs would."""

    def build(*edits: Edit) -> Ask:
        files = compiled(tmp_path, list(edits))
        options = module("edited_options", files["options.py"], tmp_path).Options()
        models = module("edited_models", files["native/models.py"], tmp_path)
        fields = module("edited_fields", files["native/fields.py"], tmp_path)
        source = files["native/routes.py"].replace(
            "from mlxcel.generated.native import models", "import edited_models as models"
        )
        routes = module("edited_routes", source, tmp_path)
        assert models.__name__ in sys.modules
        runtime = Runtime(make_context(engine, options, 0))
        app = build_surface(
            "native",
            json.loads(files["native/openapi.json"]),
            routes.OPERATIONS,
            fields.RULES,
            NativeError,
            runtime,
            report_unknown=False,
        )
        client = TestClient(app)
        return lambda body: client.post(
            "/completion", json={"prompt": "Hello", "n_predict": 1, **body}
        ).json()

    return build


N_PREDICT = (
    "      n_predict:\n        type: integer\n        nullable: true\n        minimum: -1\n"
    "        maximum: 2147483647\n"
)
TOP_K = "        default: 40\n        x-clamp: [0, 2147483647]\n"


def test_as_it_stands(server_of: Callable[..., Ask]) -> None:
    ask = server_of()
    settings = ask({"n_predict": 1001, "top_k": 5000, "stop": ["e"]})["generation_settings"]
    assert (settings["n_predict"], settings["top_k"]) == (1001, 5000)


def test_a_maximum_and_a_clamp(server_of: Callable[..., Ask]) -> None:
    ask = server_of(
        ("common.yaml", N_PREDICT, N_PREDICT.replace("2147483647", "1000")),
        ("common.yaml", TOP_K, TOP_K.replace("2147483647", "1000")),
    )
    refused = ask({"n_predict": 1001})["error"]
    assert (refused["code"], "'n_predict'" in refused["message"]) == (400, True)
    assert ask({"top_k": 5000})["generation_settings"]["top_k"] == 1000


def test_a_default(server_of: Callable[..., Ask]) -> None:
    old = "        return_tokens:\n          type: boolean\n          nullable: true\n          default: false\n"
    ask = server_of(("native.yaml", old, old.replace("false", "true")))
    assert len(ask({"n_predict": 2, "ignore_eos": True})["tokens"]) == 2


def test_an_options_default(server_of: Callable[..., Ask]) -> None:
    ask = server_of(
        ("options.yaml", "    default: 0.95\n", "    default: 0.5\n"),
        ("common.yaml", "        default: 0.95\n", "        default: 0.5\n"),
    )
    assert ask({})["generation_settings"]["top_p"] == 0.5


def test_an_alias(server_of: Callable[..., Ask]) -> None:
    ask = server_of(
        ("common.yaml", "x-aliases: [max_completion_tokens, max_tokens]", "x-aliases: [how_many]")
    )
    assert ask({"n_predict": None, "how_many": 2, "ignore_eos": True})["tokens_predicted"] == 2
    assert "max_tokens" in ask({"max_tokens": 2})["error"]["message"]
