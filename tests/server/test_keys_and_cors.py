"""API keys and the headers that browsers ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlxcel.engine.loading import LoadedModel
from mlxcel.server.keys import api_keys
from mlxcel.server.options import SettingsError, parse
from tests.support.serving import Served, serving


@pytest.fixture(scope="module")
def guarded(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-np", "1", "--api-key", "secret,other") as running:
        yield running


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "bearer secret"}, 401),
        ({"Authorization": "Basic secret"}, 401),
        ({"Authorization": "Bearer secret"}, 200),
        ({"Authorization": "Bearer other"}, 200),
        ({"X-Api-Key": "secret"}, 200),
    ],
)
def test_a_key_is_asked_for(guarded: Served, headers: dict[str, str], status: int) -> None:
    assert guarded.get("/props", headers=headers).status == status
    assert guarded.get("/v1/models", headers=headers).status == status


def test_the_key_comes_before_everything_else(guarded: Served) -> None:
    for path, method in (("/nope", "GET"), ("/completion", "PUT"), ("/v1/nope", "POST")):
        answer = guarded.request(method, path)
        assert (answer.status, answer.error["type"]) == (401, "authentication_error")


@pytest.mark.parametrize("path", ["/health", "/v1/health", "/"])
def test_some_paths_are_public(guarded: Served, path: str) -> None:
    assert guarded.get(path).status == 200


def test_keys_from_every_source_count(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# a comment\nfrom file\n\n last \n")
    options = parse(["--api-key", 'a,"b,c"', "--api-key-file", str(file)], {})
    assert api_keys(options) == (b"a", b"b,c", b"from file", b" last ")


def test_a_missing_key_file_ends_start_up(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--api-key-file"):
        api_keys(parse(["--api-key-file", str(tmp_path / "none")], {}))


def test_browsers_may_ask_from_anywhere_but_without_credentials(server: Served) -> None:
    preflight = server.request("OPTIONS", "/completion", headers={"Origin": "http://example.com"})
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in preflight.headers
    refused = server.post("/completion", {}, headers={"Origin": "http://example.com"})
    assert refused.headers["access-control-allow-origin"] == "*"
