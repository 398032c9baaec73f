"""What bundling makes of references, property sets, aliases and defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from codegen.bundle import bundle
from codegen.document import load_specs

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def native() -> dict[str, Any]:
    return bundle(load_specs(HERE / "specs"), "native")


def properties(document: dict[str, Any], schema: str) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"][schema]["properties"]
    return found


def test_no_reference_leaves_the_document(native: dict[str, Any]) -> None:
    text = json.dumps(native)
    assert ".yaml" not in text
    assert native["components"]["responses"]["Error"]["content"]
    assert list(native["components"]["schemas"])[-2:] == ["Error", "ErrorBody"]


def test_sets_come_first_and_a_property_in_place_wins() -> None:
    openai = bundle(load_specs(HERE / "specs"), "openai")
    chat = properties(openai, "ChatRequest")
    assert list(chat) == ["temperature", "top_k", "mirostat", "messages", "metadata"]
    assert chat["temperature"] == {"type": "number", "nullable": True, "minimum": 0, "default": 1}
    assert "x-include" not in json.dumps(openai)


def test_aliases_are_deprecated_properties_with_the_same_schema(native: dict[str, Any]) -> None:
    request = properties(native, "CompletionRequest")
    names = list(request)
    assert names[names.index("n_predict") :][:3] == ["n_predict", "max_completion_tokens", "max_tokens"]
    alias = request["max_tokens"]
    assert alias["x-alias-for"] == "n_predict"
    assert alias["deprecated"] is True
    for key in ("type", "minimum", "maximum", "nullable"):
        assert alias[key] == request["n_predict"][key]


def test_a_required_field_may_come_under_its_alias(native: dict[str, Any]) -> None:
    schema = {"$ref": "#/components/schemas/EmbeddingRequest", "components": native["components"]}
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"input": "a"})
    assert validator.is_valid({"content": "a"})
    assert not validator.is_valid({})


def test_the_option_supplies_the_default(native: dict[str, Any]) -> None:
    request = properties(native, "CompletionRequest")
    assert "default" not in request["n_predict"]
    assert request["n_predict"]["x-option"] == "--predict"
    assert request["top_k"]["default"] == 40


def test_a_refused_field_says_which_value_is_inert(native: dict[str, Any]) -> None:
    assert properties(native, "CompletionRequest")["mirostat"]["x-compat"]["inert"] == 0


def test_an_alias_path_has_operations_of_its_own(native: dict[str, Any]) -> None:
    original, alias = native["paths"]["/completion"]["post"], native["paths"]["/completions"]["post"]
    assert alias["operationId"] == "native.completion.create.alias"
    assert {**alias, "operationId": ""} == {**original, "operationId": ""}
