"""Pooling and normalisation, against the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

from mlxcel.engine.pooling import normalize, pool

STATES = np.array([[1.0, -2.0, 2.0], [3.0, 0.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("none", [[1, -2, 2], [3, 0, 4]]),
        ("mean", [[2, -1, 3]]),
        ("cls", [[1, -2, 2]]),
        ("last", [[3, 0, 4]]),
    ],
)
def test_pooling(pooling: str, expected: list[list[float]]) -> None:
    np.testing.assert_allclose(pool(STATES, pooling), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (-1, [1, -2, 2]),
        (0, [16380, -32760, 32760]),
        (1, [1 / 5, -2 / 5, 2 / 5]),
        (2, [1 / 3, -2 / 3, 2 / 3]),
        (3, [1 / 17 ** (1 / 3), -2 / 17 ** (1 / 3), 2 / 17 ** (1 / 3)]),
    ],
)
def test_normalisation(norm: int, expected: list[float]) -> None:
    np.testing.assert_allclose(normalize(STATES[:1], norm)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("norm", [0, 1, 2, 5])
def test_zero_vectors_stay_zero(norm: int) -> None:
    np.testing.assert_array_equal(normalize(np.zeros((1, 4), np.float32), norm), np.zeros((1, 4)))
