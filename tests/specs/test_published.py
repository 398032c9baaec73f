"""What is published is whole: valid OpenAPI, described, with examples that are valid themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator
from recorded import Place, documents, explain

SURFACES = ("native", "openai")
METHODS = ("get", "post", "delete")


def operations(surface: str) -> Iterator[tuple[str, Place]]:
    document = documents()[surface]
    for url, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {url}", Place(item[method], document)


@pytest.mark.parametrize("surface", SURFACES)
def test_the_document_is_openapi(surface: str) -> None:
    # as it is published: JSON, whose keys are strings
    document = json.loads(json.dumps(documents()[surface]))
    assert document["openapi"] == "3.0.3"
    OpenAPIV30SpecValidator(document).validate()


@pytest.mark.parametrize("surface", SURFACES)
def test_everything_is_described(surface: str) -> None:
    schemas = documents()[surface]["components"]["schemas"]
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []
    requests: set[str] = set()
    for name, where in operations(surface):
        assert where.operation["summary"], name
        assert where.operation["x-compat"]["state"], name
        schema = where.request_schema()
        if schema is not None:
            requests.add(schema["$ref"].rsplit("/", 1)[1])
    for request in requests:
        for name, node in schemas[request].get("properties", {}).items():
            place = Place({}, documents()[surface])
            assert node.get("description") or place.resolve(node).get("description"), f"{request}.{name}"


@pytest.mark.parametrize("surface", SURFACES)
def test_examples_of_requests_are_valid(surface: str) -> None:
    found = 0
    for name, where in operations(surface):
        schema = where.request_schema()
        if schema is None:
            continue
        media: dict[str, Any] = where.resolve(where.operation["requestBody"])["content"]["application/json"]
        assert "example" in media, name
        assert explain(where.validator(schema), media["example"]) is None, name
        found += 1
    assert found >= 6


@pytest.mark.parametrize("surface", SURFACES)
def test_examples_of_fields_and_errors_are_valid(surface: str) -> None:
    document = documents()[surface]
    place = Place({}, document)
    for name, schema in document["components"]["schemas"].items():
        nodes = {
            name: schema,
            **{f"{name}.{key}": node for key, node in schema.get("properties", {}).items()},
        }
        for where, node in nodes.items():
            if "example" in node:
                assert explain(place.validator(node), node["example"]) is None, where
    for name, response in document["components"]["responses"].items():
        media = response["content"]["application/json"]
        if "example" in media:
            assert explain(place.validator(media["schema"]), media["example"]) is None, name


@pytest.mark.parametrize("surface", SURFACES)
def test_every_operation_lists_its_errors(surface: str) -> None:
    for name, where in operations(surface):
        codes = {int(code) for code in where.operation["responses"] if str(code).isdigit()}
        assert {400, 500} <= codes or 403 in codes, name
        if "requestBody" in where.operation:
            assert {400, 401, 413, 500, 503} <= codes, name
        if where.operation.get("x-requires") or where.operation["x-compat"]["state"] == "refused":
            assert 501 in codes, name


def test_fields_that_are_shared_are_the_same_on_both_surfaces() -> None:
    native = documents()["native"]["components"]["schemas"]["CompletionRequest"]["properties"]
    openai = documents()["openai"]["components"]["schemas"]["TextCompletionRequest"]["properties"]
    differing = {name for name in native.keys() & openai.keys() if native[name] != openai[name]}
    assert differing == {"echo"}
    assert native.keys() - openai.keys() == {"return_tokens", "response_fields"}
