"""Threads are used while they help and dropped when they don't."""

from __future__ import annotations

import pytest

from mlxcel.engine import threads
from mlxcel.engine.threads import Threads


class Machine:
    """A matrix library whose products take as long as the test says."""

    def __init__(self) -> None:
        self.now = 100.0
        self.threads = 0
        self.trials = 0
        self.seconds = {1: 1.0, 2: 0.6}

    def set_threads(self, n: int) -> None:
        self.threads = n

    def trial(self) -> float:
        self.trials += 1
        return self.seconds[self.threads]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr("mlxcel.engine.threads.time.monotonic", lambda: made.now)
    return made


def test_threads_are_used_where_they_help(machine: Machine) -> None:
    Threads(2, machine.set_threads, machine.trial).adjust()
    assert machine.threads == 2


def test_threads_are_dropped_where_the_machine_is_busy_and_taken_up_again(machine: Machine) -> None:
    governor = Threads(2, machine.set_threads, machine.trial)
    machine.seconds[2] = 9.0
    governor.adjust()
    assert machine.threads == 1
    machine.seconds[2] = 0.6
    machine.now += threads.LONGEST
    governor.adjust()
    assert machine.threads == 2


def test_a_finding_holds_for_a_while_and_a_bad_one_longer_each_time(machine: Machine) -> None:
    governor = Threads(2, machine.set_threads, machine.trial)
    governor.adjust()
    governor.adjust()
    assert machine.trials == 2
    machine.seconds[2] = 9.0
    machine.now += threads.INTERVAL
    governor.adjust()
    machine.now += threads.INTERVAL
    governor.adjust()
    assert machine.trials == 4


def test_one_thread_needs_no_trial(machine: Machine) -> None:
    Threads(1, machine.set_threads, machine.trial).adjust()
    assert machine.trials == 0
    assert machine.threads == 1
