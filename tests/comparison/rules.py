"""The rules of ``tests/reference/replay.py``, applied to the answers of two servers to one request."""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal

from tests.conformance.recorded import LATER, REFERENCE, cases

TOLERANCE = 2e-3
PINNED = re.compile(r"cache-(second|third|fourth)|progress-cached-2")
"""Names of cases whose cached tokens don't depend on what was asked before."""

Json = dict[str, Any]
Verdict = Literal["agrees", "deviates", "known", "differs"]


def _definitions(script: Path) -> Json:
    """What ``script`` defines; its calls at the top level, which run it, are left out."""
    tree = ast.parse(script.read_text())
    tree.body = [statement for statement in tree.body if not isinstance(statement, ast.Expr)]
    names: Json = {}
    exec(compile(tree, str(script), "exec"), names)
    return names


_REPLAY = _definitions(REFERENCE / "replay.py")
call: Callable[[str, Json], Json] = _REPLAY["call"]
"""Sends a request, as it is recorded, to the server at a URL."""
_judge: Callable[..., str | None] = _REPLAY["judge"]
_CACHE = frozenset[str](_REPLAY["CACHE"])


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer, or why there is none, and the time that it took."""

    answer: Json
    seconds: float
    failure: str | None = None

    @property
    def status(self) -> str:
        return str(self.answer.get("status", "-"))


@dataclass(frozen=True, slots=True)
class Compared:
    """One case: what both servers replied, and the first difference that counts."""

    name: str
    reference: Reply
    ours: Reply
    verdict: Verdict
    difference: str | None = None


def deviations() -> dict[str, Json]:
    """The deliberate deviations by the name of the case."""
    listed: dict[str, Json] = json.loads((REFERENCE / "deviations.json").read_text())
    return listed


def replies(url: str, name: str) -> list[Reply]:
    """Play the file ``name`` against the server at ``url``, which must have been started for it."""
    return [_reply(url, case["request"]) for case in cases(name)]


def _reply(url: str, request: Json) -> Reply:
    begun = time.perf_counter()
    try:
        answer, failure = call(url, request), None
    except (OSError, HTTPException) as error:
        answer, failure = {}, f"{type(error).__name__}: {error}"
    return Reply(answer, time.perf_counter() - begun, failure)


def compare(
    name: str, reference: Sequence[Reply], ours: Sequence[Reply], deliberate: dict[str, Json]
) -> list[Compared]:
    """Compare the replies of both servers to the file ``name``, case by case."""
    return [
        compare_case(f"{name}/{case['request']['name']}", case, theirs, own, deliberate)
        for case, theirs, own in zip(cases(name), reference, ours, strict=True)
    ]


def compare_case(
    name: str, case: Json, reference: Reply, ours: Reply, deliberate: dict[str, Json]
) -> Compared:
    """Compare two replies to the recorded ``case``.

    A deviation counts as deliberate only as far as it is the one that is listed.
    """
    difference = _difference(case, reference, ours)
    verdict: Verdict = "differs"
    if difference is None:
        verdict = "agrees"
    elif name in LATER:
        verdict = "known"
    elif name in deliberate and not reference.failure:
        otherwise = _difference(case, reference, ours, deliberate[name])
        verdict, difference = ("differs", otherwise) if otherwise else ("deviates", difference)
    return Compared(name, reference, ours, verdict, difference)


def _difference(case: Json, reference: Reply, ours: Reply, deviation: Json | None = None) -> str | None:
    if reference.failure:
        return f"the reference gave no answer: {reference.failure}"
    if ours.failure:
        return ours.failure
    request = case["request"]
    try:
        return _judge(
            reference.answer,
            ours.answer,
            TOLERANCE,
            not request["path"].startswith("/v1"),
            deviation,
            case.get("compare"),
            _skipped(request),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return f"answers of different shape: {type(error).__name__}: {error}"


def _skipped(request: Json) -> frozenset[str]:
    """Keys whose values two correct servers needn't share for this request."""
    body = request["body"] if isinstance(request.get("body"), dict) else {}
    pinned = body.get("cache_prompt") is False or PINNED.match(request["name"])
    return (frozenset() if pinned else _CACHE) | ({"grammar"} if "json_schema" in body else frozenset())
