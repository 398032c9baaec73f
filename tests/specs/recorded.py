"""The recorded answers, and the specs as validators, for the tests of this folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from codegen.bundle import bundle
from codegen.document import load_specs

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCE = ROOT / "tests" / "reference"
DEVIATIONS: dict[str, dict[str, Any]] = json.loads((REFERENCE / "deviations.json").read_text())

_ANNOTATIONS = ("nullable", "default", "example", "description", "deprecated")

# Operations that later issues declare.
UNDECLARED = re.compile(r"/v1/(messages|responses|audio)(/|$)|/models/load|/nope")


@dataclass(frozen=True, slots=True)
class Case:
    """A request and what the reference answered; ``name`` is file and name, as in the deviations."""

    name: str
    request: dict[str, Any]
    answer: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.request.get("method", "POST")).lower()

    @property
    def path(self) -> str:
        return str(self.request["path"]).partition("?")[0]

    @property
    def status(self) -> int:
        return int(self.answer["status"])

    @property
    def deviation(self) -> dict[str, Any] | None:
        return DEVIATIONS.get(self.name)


@cache
def cases() -> tuple[Case, ...]:
    """Every recorded case whose operation is declared by now."""
    found = []
    for file in sorted((REFERENCE / "captures").glob("*.json")):
        for record in json.loads(file.read_text()):
            case = Case(f"{file.stem}/{record['request']['name']}", record["request"], record["answer"])
            if not UNDECLARED.match(case.path) and "failed" not in case.answer:
                found.append(case)
    assert len(found) > 300
    return tuple(found)


@cache
def documents() -> dict[str, dict[str, Any]]:
    """The bundled document of each surface."""
    specs = load_specs(ROOT / "specs")
    return {surface: bundle(specs, surface) for surface in ("native", "openai")}


@dataclass(frozen=True, slots=True)
class Place:
    """An operation and the document that it is in."""

    operation: dict[str, Any]
    document: dict[str, Any]

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """A node, or what it refers to."""
        while "$ref" in node:
            target: Any = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def answer_schema(self, status: int, media_type: str) -> dict[str, Any] | None:
        """What the operation declares to answer, None when it doesn't declare that status and type."""
        response = self.operation["responses"].get(str(status)) or self.operation["responses"].get(status)
        if response is None:
            return None
        content = self.resolve(response).get("content", {})
        schema: dict[str, Any] | None = content.get(media_type, {}).get("schema")
        return schema

    def request_schema(self) -> dict[str, Any] | None:
        """What the operation takes as JSON, None without a body."""
        body = self.operation.get("requestBody")
        return None if body is None else dict(self.resolve(body)["content"]["application/json"]["schema"])

    def validator(self, schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
        """The compiled form of one of the document's schemas."""
        return _compiled(self.document["info"]["title"], json.dumps(schema))


@cache
def _compiled(title: str, schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {**json_schema(json.loads(schema)), "components": _components(title)}
    )


def place(case: Case) -> Place | None:
    """The operation that answers a case, None when no surface has one."""
    for document in documents().values():
        for url, item in document["paths"].items():
            pattern = re.sub(r"{\w+}", "[^/]+", url)
            if re.fullmatch(pattern, case.path) and case.method in item:
                return Place(item[case.method], document)
    return None


@cache
def _components(title: str) -> dict[str, Any]:
    (document,) = [document for document in documents().values() if document["info"]["title"] == title]
    schemas = document["components"]["schemas"]
    return {"schemas": {name: json_schema(schema) for name, schema in schemas.items()}}


def json_schema(node: Any) -> Any:
    """An OpenAPI 3.0 schema as JSON Schema; written apart from the server's so that one checks the other."""
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            result[key] = {name: json_schema(schema) for name, schema in value.items()}
        elif key in ("enum", "required"):
            result[key] = value
        elif key not in _ANNOTATIONS and not key.startswith("x-"):
            result[key] = json_schema(value)
    if node.get("nullable") is True:
        result["type"] = [node["type"], "null"]
    return result


def frames(case: Case) -> Iterator[Any]:
    """The decoded data of each event of a recorded stream, ``[DONE]`` left out."""
    for block in case.answer["sse"]:
        text = block.removeprefix("data: ").strip()
        if text and text != "[DONE]":
            yield json.loads(text)


def explain(validator: jsonschema_rs.Draft202012Validator, value: Any) -> str | None:
    """Why a value isn't valid, None when it is."""
    for error in validator.iter_errors(value):
        return f"{'.'.join(map(str, error.instance_path))}: {error.message[:300]}"
    return None
