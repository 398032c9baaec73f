"""A server with the random tiny model: its answers are nonsense and come at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving


@pytest.fixture(scope="module")
def server(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "--alias", "tiny", "-c", "1024", "-np", "2", "--metrics", "--props") as running:
        yield running
