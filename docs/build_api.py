"""Renders the API reference of each surface, one self-contained page a surface: ``python docs/build_api.py``.

Reads generated/<surface>/openapi.json and writes docs/api/<surface>.html beside a copy of the document itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "api"
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
STATES = {
    "refused": "answers 501 unless off",
    "ours": "not in llama-server",
    "inert": "accepted, without effect",
}

Node = dict[str, Any]

_markdown = MarkdownIt("commonmark", {"html": False})


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as the page shows it; ``paths`` holds every path that answers it, the main one first."""

    id: str
    method: str
    paths: tuple[str, ...]
    node: Node


class Reference:
    """One surface's document, with what the template asks of it."""

    def __init__(self, document: Node) -> None:
        self.document = document
        self.schemas: Node = document["components"]["schemas"]

    def operations(self) -> list[Operation]:
        """The operations in the document's order; paths that stand for another are folded into it."""
        also: dict[str, list[str]] = {}
        for path, item in self.document["paths"].items():
            if "x-alias-of" in item:
                also.setdefault(item["x-alias-of"], []).append(path)
        return [
            Operation(node["operationId"], method.upper(), (path, *also.get(path, ())), node)
            for path, item in self.document["paths"].items()
            if "x-alias-of" not in item
            for method, node in item.items()
            if method in METHODS
        ]

    def resolved(self, node: Node) -> Node:
        """What a reference points to; anything else unchanged."""
        while "$ref" in node:
            found: Any = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node

    def fields(self, schema: Node) -> Iterator[tuple[str, Node, bool]]:
        """Name, schema and necessity of each property; other names of a field are told beside it."""
        required = schema.get("required", ())
        for name, node in schema.get("properties", {}).items():
            if "x-alias-for" not in node:
                yield name, node, name in required

    def kind(self, node: Node) -> Markup:
        """The type in words, with links to named schemas."""
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            return Markup('<a href="#schema-{0}">{0}</a>').format(name)
        for key in ("anyOf", "oneOf", "allOf"):
            if key in node:
                joint = " and " if key == "allOf" else " or "
                return Markup(joint).join(dict.fromkeys(self.kind(branch) for branch in node[key]))
        if "enum" in node:
            return Markup(" | ").join(_code(value) for value in node["enum"] if value is not None)
        if node.get("type") == "array":
            return Markup("list of ") + self.kind(node.get("items", {}))
        return escape(node.get("type", "anything"))

    def limits(self, node: Node) -> str:
        """Bounds, what lies outside them, and what an absent field means."""
        said = []
        low, high = node.get("minimum"), node.get("maximum")
        if low is not None or high is not None:
            said.append(f"{_interval(low, high)}, else 400")
        if "x-clamp" in node:
            said.append(f"moved into {_interval(*node['x-clamp'])}")
        if "x-maximum-from" in node:
            said.append(f"at most the number of {node['x-maximum-from']}")
        for key, words in (("maxLength", "characters"), ("maxItems", "items")):
            if key in node:
                said.append(f"at most {node[key]} {words}")
        if "x-option" in node:
            said.append(f"default: server option {node['x-option']}")
        elif "default" in node:
            said.append(f"default: {json.dumps(node['default'], ensure_ascii=False)}")
        return "; ".join(said)

    def state(self, node: Node) -> str:
        """How a field stands to llama-server's, where that needs words."""
        compat = node.get("x-compat", {})
        said = [STATES.get(compat.get("state", ""), ""), compat.get("note", ""), node.get("x-inert", "")]
        return "; ".join(filter(None, said))


def _interval(low: float | None, high: float | None) -> str:
    if low is None:
        return f"up to {high}"
    return f"from {low}" if high is None else f"{low} to {high}"


def _code(value: object) -> Markup:
    return Markup("<code>{}</code>").format(json.dumps(value, ensure_ascii=False))


def markdown(text: str) -> Markup:
    """Descriptions are Markdown; HTML in them is shown, not obeyed."""
    return Markup(_markdown.render(text))  # the renderer escapes


def inline(text: str) -> Markup:
    """Like :func:`markdown`, without a paragraph around it."""
    return Markup(_markdown.renderInline(text))


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def render(document: Node) -> str:
    """The page of one surface."""
    environment = Environment(
        loader=FileSystemLoader(ROOT / "docs" / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    reference = Reference(document)
    environment.filters.update(markdown=markdown, inline=inline, pretty=pretty, resolved=reference.resolved)
    return environment.get_template("api.html.j2").render(document=document, reference=reference)


def main() -> None:
    """Write every surface's page and say where."""
    OUTPUT.mkdir(exist_ok=True)
    for source in sorted((ROOT / "generated").glob("*/openapi.json")):
        surface = source.parent.name
        page = OUTPUT / f"{surface}.html"
        page.write_text(render(json.loads(source.read_text(encoding="utf-8"))), encoding="utf-8")
        shutil.copyfile(source, OUTPUT / f"{surface}.openapi.json")
        print(f"wrote {page.relative_to(ROOT)} ({page.stat().st_size // 1024} kB)")


if __name__ == "__main__":
    main()
