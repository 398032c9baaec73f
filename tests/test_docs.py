"""The API reference: complete, self-contained, and safe to show."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from docs.build_api import render

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = {
    path.parent.name: json.loads(path.read_text()) for path in sorted(ROOT.glob("generated/*/openapi.json"))
}


class Page(HTMLParser):
    """The anchors, links and loaded things of a page, and whether every element is closed."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += [value for key, value in attrs if key == "id" and value]
        self.links += [value for key, value in attrs if key == "href" and value]
        if tag in ("script", "link", "img", "iframe") or "src" in given:
            self.loaded.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


@pytest.mark.parametrize("surface", DOCUMENTS)
def test_a_page_shows_the_whole_document(surface: str) -> None:
    document: dict[str, Any] = DOCUMENTS[surface]
    text = render(document)
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    # Every link leads somewhere on the page, and nothing is loaded from elsewhere.
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} <= set(page.ids)
    assert page.loaded == []
    for path, item in document["paths"].items():
        assert f"<code>{path}</code>" in text or f" {path}</code>" in text
        if "x-alias-of" not in item:
            assert {node["operationId"] for node in item.values() if isinstance(node, dict)} <= set(page.ids)
    for schema, node in document["components"]["schemas"].items():
        assert f"schema-{schema}" in page.ids
        for field in node.get("properties", {}):
            assert f"<code>{field}</code>" in text, (schema, field)


def test_a_field_shows_its_limits_aliases_and_state() -> None:
    field = {
        "type": "integer",
        "minimum": -1,
        "maximum": 5,
        "x-clamp": [0, None],
        "x-option": "--predict",
        "x-compat": {"state": "refused", "note": "not yet"},
    }
    text = re.sub(
        r"\s+",
        " ",
        render(document_with({"n": {**field, "x-aliases": ["m"]}, "m": {"x-alias-for": "n"}})),
    )
    assert (
        "-1 to 5, else 400; moved into from 0; default: server option --predict; answers 501 unless off; not yet"
        in text
    )
    assert "or <code>m</code>" in text


def test_descriptions_cannot_inject_html() -> None:
    text = render(
        document_with({"<b>": {"type": "string", "description": "<script>alert(1)</script> *fine*"}})
    )
    assert "<script" not in text
    assert "<b>" not in text
    assert "<em>fine</em>" in text


def document_with(properties: dict[str, Any]) -> dict[str, Any]:
    """A document of one schema."""
    return {
        "info": {"title": "T", "version": "1"},
        "paths": {},
        "components": {"schemas": {"Thing": {"type": "object", "properties": properties}}},
    }
