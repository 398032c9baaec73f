"""What README and docs/ say of paths, keys, options and files, held against the project."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlxcel.generated import dispatch
from mlxcel.generated.options import OPTION_TABLE

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
SPELLINGS = {word for option in OPTION_TABLE for word in (*option.spellings, *option.negated)}
VARIABLES = {option.env for option in OPTION_TABLE if option.env}

# Options of other programs that the pages name, and a stand-in for any of ours.
FOREIGN = {"--check", "--dry-run", "--strict", "--spelling", "--version"}


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def rows(page: str, first: str) -> list[list[str]]:
    """The cells of the table whose head begins with ``first``, its head left out."""
    lines = text(page).split(f"\n| {first} ", 1)[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_readme_gives_each_path_to_the_surface_that_answers_it() -> None:
    named = {path: surface.lower() for paths, surface in rows("README.md", "path") for path in code(paths)}
    assert named == {path: next(iter(set(dispatch.EXACT[path].values()))) for path in named}
    assert set(named.values()) == set(dispatch.SURFACES)


def test_migration_names_paths_that_exist() -> None:
    for calls, _, _, change in rows("docs/migration.md", "your client calls"):
        for request in (*code(calls), *code(change)):
            method, path = request.split()
            assert method in dispatch.EXACT[path], request


def test_every_key_of_our_dialect_is_explained() -> None:
    schema = json.loads(text("specs/x-keys.schema.json"))
    keys = set(re.findall(r'"(x-[a-z-]+)":', json.dumps(schema))) - {"x-property-sets"}
    explained = {code(row[0])[0].partition(":")[0] for row in rows("docs/architecture.md", "key")}
    assert explained == keys


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_and_variables_exist(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", content)) - SPELLINGS - FOREIGN == set()
    assert set(re.findall(r"\b(?:LLAMA_ARG|MLXCEL)_[A-Z_]+", content)) - VARIABLES == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_files_exist(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    linked = {(page.parent / link) for link in re.findall(r"\]\(([^)#:]+)\)", content)}
    named = {
        ROOT / path
        for path in re.findall(
            r"(?<![\w/`])(?:engine|server|handlers|specs|tests|docs|\.ci)/[\w./-]*\w", content
        )
    }
    made = {"thing.py", "test_probabilities.py", "api"}
    missing = {
        str(path.relative_to(ROOT))
        for path in linked | named
        if not path.resolve().exists() and path.name not in made
    }
    assert missing == set()


def test_make_targets_are_those_that_the_pages_name() -> None:
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`(?:make) ([a-z]+)", page.read_text(encoding="utf-8")))
        assert named <= targets, page.name
