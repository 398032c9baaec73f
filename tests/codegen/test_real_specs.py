"""The specs of the server: what is committed is what they give, and editing them changes it."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from codegen.document import load
from codegen.output import drift
from codegen.pipeline import compile_specs
from mlxcel.generated.dispatch import SURFACES

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def committed() -> dict[str, str]:
    return compile_specs(ROOT / "specs", ROOT)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "specs", tmp_path / "specs"))


def edit(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes every definition of a property in the files of a copy; at least one must exist."""
    found = 0
    for path in folder.glob("*.yaml"):
        document = load(path, path.name)
        components = document.get("components", {})
        holders = [schema.get("properties", {}) for schema in components.get("schemas", {}).values()]
        holders += components.get("x-property-sets", {}).values()
        nodes = [holder[name] for holder in holders if name in holder]
        for node in nodes:
            change(node)
        if nodes:
            path.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")
        found += len(nodes)
    assert found


def test_generated_is_what_the_specs_give(committed: dict[str, str]) -> None:
    assert drift(committed, ROOT / "generated") == []


@pytest.mark.parametrize("surface", SURFACES)
def test_every_request_can_be_built(surface: str) -> None:
    routes = importlib.import_module(f"mlxcel.generated.{surface}.routes")
    rules = importlib.import_module(f"mlxcel.generated.{surface}.fields").RULES
    requests = {operation.schema: operation.request for operation in routes.OPERATIONS if operation.request}
    assert requests
    for schema, request in requests.items():
        msgspec.json.Decoder(request)
        assert {ref.schema for rule in rules[schema] for ref in rule.objects} <= rules.keys()


def test_a_new_maximum_reaches_the_validator(committed: dict[str, str], copy: Path) -> None:
    edit(copy, "n_predict", lambda node: node.update({"maximum": 1000}) if "maximum" in node else None)
    files = compile_specs(copy, None)
    assert _property(committed, "n_predict")["maximum"] == 2147483647
    for name in ("n_predict", "max_tokens", "max_completion_tokens"):
        assert _property(files, name)["maximum"] == 1000


def test_a_new_clamp_reaches_the_field_rules(committed: dict[str, str], copy: Path) -> None:
    assert _rule(committed, "top_k").get("clamp") != (0, 1000)
    edit(copy, "top_k", lambda node: node.update({"x-clamp": [0, 1000]}) if "x-option" in node else None)
    assert _rule(compile_specs(copy, None), "top_k")["clamp"] == (0, 1000)


def test_a_new_default_of_an_option_reaches_options_and_model(committed: dict[str, str], copy: Path) -> None:
    path = copy / "options.yaml"
    document = load(path, path.name)
    (entry,) = [entry for entry in document["options"] if "--top-k" in entry["spellings"]]
    entry["default"] = 17
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")
    files = compile_specs(copy, None)
    for file in ("options.py", "native/models.py"):
        assert "top_k: int = 17" in files[file]
        assert "top_k: int = 17" not in committed[file]


def test_a_new_alias_reaches_document_and_field_rules(copy: Path) -> None:
    edit(copy, "top_k", lambda node: node.update({"x-aliases": ["topk"]}) if "x-option" in node else None)
    files = compile_specs(copy, None)
    assert _property(files, "topk")["x-alias-for"] == "top_k"
    assert _rule(files, "top_k")["aliases"] == ("topk",)


def _property(files: dict[str, str], name: str) -> dict[str, Any]:
    schemas = json.loads(files["native/openapi.json"])["components"]["schemas"]
    found: dict[str, Any] = schemas["CompletionRequest"]["properties"][name]
    return found


def _rule(files: dict[str, str], name: str) -> dict[str, Any]:
    """The literal keywords of the first rule of that name in generated fields.py."""
    for node in ast.walk(ast.parse(files["native/fields.py"])):
        if isinstance(node, ast.Call) and ast.unparse(node).startswith(f"FieldRule({name!r}"):
            return {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg and k.arg != "objects"}
    raise AssertionError("fields.py has no such rule")
