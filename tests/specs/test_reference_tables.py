"""The specs hold every route, field and option of the reference's tables, with ranges, aliases, defaults."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest
from recorded import REFERENCE, ROOT, documents

from codegen.document import load

# Operations that later issues declare, and router mode, where they don't exist.
LATER = {
    "DELETE /models",
    "POST /models",
    "POST /models/load",
    "POST /models/unload",
    "GET /models/sse",
    "POST /responses",
    "POST /v1/responses",
    "POST /responses/input_tokens",
    "POST /v1/responses/input_tokens",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /audio/transcriptions",
    "POST /v1/audio/transcriptions",
    "GET /v1/stream",
    "DELETE /v1/stream",
    "POST /v1/chat/completions/control",
}

SPECULATIVE = {"n_max", "n_min", "p_min", "type", "ngram_size_n", "ngram_size_m", "ngram_min_hits"}


def table(name: str) -> list[dict[str, str]]:
    with (REFERENCE / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def request_properties(schema: str) -> dict[str, Any]:
    found: dict[str, Any] = documents()["native"]["components"]["schemas"][schema]["properties"]
    return found


def branches(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The typed alternatives of a property."""
    while "$ref" in node:
        node = documents()["native"]["components"]["schemas"][node["$ref"].rsplit("/", 1)[1]]
    return [found for branch in node["anyOf"] for found in branches(branch)] if "anyOf" in node else [node]


def test_every_route_is_declared() -> None:
    declared = {
        f"{method.upper()} {path}"
        for document in documents().values()
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "post", "delete")
    }
    listed = {f"{row['method']} {row['path']}" for row in table("routes")}
    assert len(listed) == 50
    assert listed - LATER - declared == set()
    assert not LATER & declared
    assert declared - listed == {"GET /", "GET /v1/models/{model}"}


@pytest.mark.parametrize("row", table("fields"), ids=lambda row: row["field"])
def test_every_field_is_declared(row: dict[str, str]) -> None:
    properties = request_properties("InfillRequest" if "infill" in row["where"] else "CompletionRequest")
    node = properties[row["field"]]
    aliases = [alias for alias in row["aliases (first present wins)"].split(", ") if alias]
    extra = ["thinking_budget_tokens"] if row["field"] == "reasoning_budget_tokens" else []
    assert node.get("x-aliases", []) == aliases + extra
    assert node["x-compat"]["state"] in ("supported", "refused", "inert")
    kinds = {branch["type"] for branch in branches(node)}
    stated = row["JSON type"]
    for word in ("integer", "number", "boolean"):
        if stated.split(" ")[0] == word:
            assert word in kinds
    if stated.startswith("["):
        assert "array" in kinds
    numbers = re.fullmatch(r"(-?[\d.]*)\.\.(-?\S*)", row["range"])
    if row["field"] in ("n_cmpl", "seed") or not numbers:
        return
    low, high = (_number(text) for text in numbers.groups())
    if row["out of range"] == "clamped":
        bounds = zip(node["x-clamp"], (low, high), strict=True)
        assert all(stated is None or bound == stated for bound, stated in bounds)
        assert "minimum" not in node
    else:
        assert (node["minimum"], node["maximum"]) == (low, high)
        assert "x-clamp" not in node


def _number(text: str) -> float | None:
    if text in ("", "inf"):
        return None
    if "^" in text:
        return 2**63 - 1
    return float(text) if "." in text else int(text)


def test_fields_of_no_effect_are_declared_too() -> None:
    properties = request_properties("CompletionRequest")
    found = {name.removeprefix("speculative.") for name in properties if name.startswith("speculative.")}
    assert found == SPECULATIVE
    listed = {row["field"] for row in table("fields")}
    assert len(listed) == 73
    canonical = {name for name, node in properties.items() if "x-alias-for" not in node}
    infill = {"input_prefix", "input_suffix", "input_extra"}
    assert canonical == listed - infill | {name for name in properties if name.startswith("speculative.")}


def test_refused_fields_name_what_they_accept() -> None:
    for document in documents().values():
        for name, schema in document["components"]["schemas"].items():
            for key, node in schema.get("properties", {}).items():
                compat = node.get("x-compat", {})
                if compat.get("state") in ("refused", "inert"):
                    assert compat.get("note"), f"{name}.{key} doesn't say why"


OPTIONS = load(ROOT / "specs" / "options.yaml", "options.yaml")["options"]


def spelled(text: str) -> list[str]:
    """The spellings in the first column of the options' table."""
    words = [part.strip().split(" ")[0] for part in text.split(", ")]
    return [word for word in words if re.fullmatch(r"--?[A-Za-z][\w.-]*", word)]


@pytest.mark.parametrize("row", table("options"), ids=lambda row: row["spellings and value"][:40])
def test_every_option_is_declared(row: dict[str, str]) -> None:
    spellings = spelled(row["spellings and value"])
    assert spellings
    holders = [o for o in OPTIONS if spellings[0] in o["spellings"] or spellings[0] in o.get("negated", [])]
    (option,) = holders
    assert set(spellings) == set(option["spellings"]) | set(option.get("negated", []))
    if row["env"]:
        assert option.get("env") == row["env"]
    default = row["default"].split(",")[0].strip()
    if option.get("state", "supported") == "supported" and re.fullmatch(r"-?\d+(\.\d+)?", default):
        assert float(option["default"]) == float(default)


def test_options_say_what_they_do_and_why_they_do_not() -> None:
    assert len(table("options")) == 248
    ours = [option for option in OPTIONS if option.get("state") == "ours"]
    assert {option["name"] for option in ours} >= {"unknown_fields", "max_body_size"}
    assert len(OPTIONS) == 248 + len(ours)
    for option in OPTIONS:
        assert option["help"].endswith("."), option["name"]
        assert not option["help"].startswith(("Not available", "Has no effect")), option["name"]


def test_request_fields_start_from_options_of_the_same_default() -> None:
    by_spelling = {spelling: option for option in OPTIONS for spelling in option["spellings"]}
    sets = load(ROOT / "specs" / "common.yaml", "common.yaml")["components"]["x-property-sets"]
    found = 0
    for properties in sets.values():
        for name, node in properties.items():
            option = by_spelling.get(node.get("x-option", ""))
            if option is None or option.get("state", "supported") != "supported" or "default" not in option:
                continue
            default = option["default"]
            if name == "samplers":
                default = default.split(";")
            assert default == node["default"], name
            found += 1
    assert found > 30
