"""What the reference answered, file by file, against this server started with that file's options."""

from __future__ import annotations

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import serving

from .recorded import LATER, OPTIONS, cases, options, play


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_every_case_agrees_but_the_known_ones(name: str, smollm2: LoadedModel) -> None:
    with serving(smollm2, *options(name)) as server:
        played = play(server.url, name)
    expected = {case for case in LATER if case.startswith(f"{name}/")}
    assert set(played.differing) == expected, played.differing


@pytest.mark.slow
def test_greedy_token_ids_are_the_recorded_ones(smollm2: LoadedModel) -> None:
    asked = [case for case in cases("completion") if (case["request"].get("body") or {}).get("return_tokens")]
    assert len(asked) >= 8
    with serving(smollm2, *OPTIONS["completion"]) as server:
        for case in asked:
            answer = server.post(case["request"]["path"], case["request"]["body"]).json
            assert answer["tokens"] == case["answer"]["json"]["tokens"], case["request"]["name"]
