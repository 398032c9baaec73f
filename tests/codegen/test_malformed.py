"""Whatever is wrong with a spec is reported as such: codegen never falls over it."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.document import Problem, SpecError, Specs, load_specs
from codegen.pipeline import check

HERE = Path(__file__).parent
REPLACEMENTS: list[Any] = [None, [], {}, "text", 3, True, ["a"], {"$ref": "#/components/schemas/Nope"}]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@pytest.mark.parametrize("seed", range(4))
def test_a_node_of_the_wrong_kind_is_reported(seed: int) -> None:
    specs = load_specs(HERE / "specs")
    found = [path for path in places(specs.files) if len(path) > 1]
    rng = random.Random(seed)
    reported: list[list[Problem]] = []
    for path in rng.sample(found, 20):
        files = copy.deepcopy(specs.files)
        node: Any = files
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = rng.choice(REPLACEMENTS)
        try:
            check(Specs(files), HERE / "specs")
        except SpecError as error:
            reported.append(error.problems)
    assert len(reported) > 10
    assert all(problem.problem and problem.remedy for problems in reported for problem in problems)
