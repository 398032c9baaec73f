"""Checks that Schemathesis doesn't have: what a valid request may be refused for, and how errors look."""

from __future__ import annotations

import json
import re
from typing import Any

import schemathesis

WORD = re.compile(r"\w+")
CONTEXT = "exceed_context_size_error"


def semantic_fields(document: dict[str, Any]) -> frozenset[str]:
    """Names of what a valid value may still be refused for, aliases too; a marked list stands for its items' fields."""
    schemas = document["components"]["schemas"]
    found: set[str] = set()

    def visit(node: Any, name: str) -> None:
        if isinstance(node, list):
            for value in node:
                visit(value, "")
        elif isinstance(node, dict):
            if "x-semantic" in node:
                items = node.get("items", {})
                items = schemas.get(items.get("$ref", "").rsplit("/", 1)[-1], items)
                found.update(filter(None, (name, *node.get("x-aliases", ()), *items.get("properties", ()))))
            for key, value in node.items():
                if key == "properties":
                    for field, schema in value.items():
                        visit(schema, field)
                else:
                    visit(value, "")

    visit(document, "")
    return frozenset(found)


def error_of(response: Any) -> dict[str, Any]:
    """The error object of an answer; anything else is a failure."""
    try:
        error = json.loads(response.content)["error"]
    except (ValueError, KeyError, TypeError):
        error = None
    assert isinstance(error, dict), (
        f"{response.status_code} without an error envelope: {response.content[:120]!r}"
    )
    return error


@schemathesis.check
def error_envelope(ctx: Any, response: Any, case: Any) -> None:
    """Every refusal has code, type and message, and the code is the status."""
    if response.status_code < 400 or case.method.upper() == "HEAD":
        return
    error = error_of(response)
    # The reference's answer for what it was started without has no code.
    assert error.get("code") == response.status_code or error.get("type") == "feature_disabled", error
    assert isinstance(error.get("type"), str), error
    assert isinstance(error.get("message"), str), error
    assert error["message"], error
    assert "Traceback" not in error["message"], error


@schemathesis.check
def valid_request_is_answered(ctx: Any, response: Any, case: Any) -> None:
    """A valid request is a 2xx; a 400 must name a field that the spec marks ``x-semantic``, or the context's size."""
    if response.status_code != 400 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    error = error_of(response)
    if error.get("type") == CONTEXT:
        return
    allowed = semantic_fields(case.operation.schema.raw_schema)
    named = WORD.findall(f"{error.get('param', '')} {error.get('message')}".lower())
    assert allowed.intersection(named), f"a valid request was refused: {error.get('message')!r}"
