"""The pieces of Connexion that are overridden, one by one, over a toy surface."""

from __future__ import annotations

import copy
from importlib import metadata
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connexion.middleware.routing import RoutingMiddleware
from starlette.testclient import TestClient

from mlxcel.generated.runtime import FieldRule, Operation, Parameter
from mlxcel.handlers.context import Context
from mlxcel.handlers.native.errors import NativeError
from mlxcel.server.endpoint import BindingError
from mlxcel.server.runtime import Runtime
from mlxcel.server.surface import build_surface

OK: dict[str, Any] = {"200": {"description": "ok", "content": {"application/json": {"schema": {}}}}}
TEXT: dict[str, Any] = {
    "200": {"description": "ok", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
TIMES = {"name": "times", "in": "query", "schema": {"type": "integer", "minimum": 1}}
BODY = {
    "required": True,
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Toy", "version": "1"},
    "paths": {
        "/echo": {"post": {"operationId": "toy.echo", "requestBody": BODY, "responses": OK}},
        "/show/{name}": {"get": {"operationId": "toy.show", "parameters": [NAME, TIMES], "responses": TEXT}},
        "/stream": {"get": {"operationId": "toy.stream", "responses": OK}},
        "/fail": {"get": {"operationId": "toy.fail", "responses": OK}},
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "additionalProperties": False,
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "nullable": True},
                    "{{ jinja }}": {"type": "string"},
                },
            }
        }
    },
}
HANDLERS = "tests.server.toy_handlers"
OPERATIONS = (
    Operation(
        operation_id="toy.echo",
        method="POST",
        path="/echo",
        handler=f"{HANDLERS}:echo",
        request=dict,
        schema="Thing",
        body_required=True,
    ),
    Operation(
        operation_id="toy.show",
        method="GET",
        path="/show/{name}",
        handler=f"{HANDLERS}:show",
        parameters=(
            Parameter(name="name", argument="name", where="path", kind="string", required=True),
            Parameter(name="times", argument="times", where="query", kind="integer", default=1),
        ),
    ),
    Operation(
        operation_id="toy.stream",
        method="GET",
        path="/stream",
        handler=f"{HANDLERS}:stream",
        streams=True,
        done=True,
    ),
    Operation(operation_id="toy.fail", method="GET", path="/fail", handler=f"{HANDLERS}:fail"),
)
RULES = {"Thing": (FieldRule("size", required=True, integers=("",), nullable=True), FieldRule("{{ jinja }}"))}


def toy(operations: tuple[Operation, ...] = OPERATIONS, document: dict[str, Any] = DOCUMENT) -> Any:
    running = SimpleNamespace(
        engine=SimpleNamespace(is_alive=True, n_slots=1), options=SimpleNamespace(max_body_size=1000)
    )
    runtime = Runtime(cast(Context, running))
    return build_surface(
        "toy", copy.deepcopy(document), operations, RULES, NativeError, runtime, report_unknown=False
    )


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(toy(), raise_server_exceptions=False)


def test_the_versions_that_the_overrides_were_written_for() -> None:
    assert metadata.version("connexion") == "3.3.0"
    assert metadata.version("starlette") == "1.10.0"


def test_the_stack_is_built_before_the_first_request() -> None:
    assert toy().middleware.middleware_stack is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"handler": f"{HANDLERS}:nobody"}, "no handler"),
        ({"handler": "tests.server.nowhere:echo"}, "no handler"),
        ({"handler": f"{HANDLERS}:wrong"}, r"takes \(ctx, other\), not \(ctx\)"),
    ],
)
def test_a_handler_that_does_not_fit_ends_the_build(change: dict[str, str], message: str) -> None:
    fields = {"operation_id": "toy.fail", "method": "GET", "path": "/fail", **change}
    with pytest.raises(BindingError, match=message):
        toy((*OPERATIONS[:-1], Operation(**fields)))  # type: ignore[arg-type]


def test_an_operation_that_only_the_document_has_ends_the_build() -> None:
    with pytest.raises(BindingError, match=r"toy\.fail"):
        toy(OPERATIONS[:-1])


def test_literal_paths_are_looked_up_and_templates_routed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise AssertionError("routed")

    assert client.get("/show/ab?times=2").text == "abab"
    monkeypatch.setattr(RoutingMiddleware, "__call__", refuse)
    assert client.post("/echo", json={"size": 1}).json() == {"echo": {"size": 1}}
    assert client.get("/show/ab").status_code == 500


def test_bodies_are_validated_and_normalised_once(client: TestClient) -> None:
    assert client.post("/echo", json={"size": 4.0}).text == '{"echo":{"size":4}}'
    assert client.post("/echo", json={"size": None}).json() == {"echo": {"size": None}}
    refused = client.post("/echo", json={"size": 1, "sizes": 2})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "Unknown field 'sizes': did you mean 'size'?"


def test_documents_are_not_rendered_as_templates(client: TestClient) -> None:
    body = {"size": 1, "{{ jinja }}": "x"}
    assert client.post("/echo", json=body).json() == {"echo": body}


def test_parameters_are_named(client: TestClient) -> None:
    assert "'times'" in client.get("/show/ab?times=0").json()["error"]["message"]
    assert "'times'" in client.get("/show/ab?times=x").json()["error"]["message"]
    assert "did you mean 'times'" in client.get("/show/ab?time=1").json()["error"]["message"]


def test_a_failure_says_nothing_of_the_inside(client: TestClient) -> None:
    answer = client.get("/fail")
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"
    assert "secret" not in answer.text


def test_a_stream_that_fails_ends_with_an_error_event_and_no_done(client: TestClient) -> None:
    first, second, rest = client.get("/stream").text.split("\n\n")
    assert first == 'data: {"n":1}'
    assert second.startswith('data: {"error":{"code":500,')
    assert rest == ""
