"""What a sampler is to the chain."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .candidates import Candidates


class Stage(Protocol):
    """A sampler that narrows or reshapes the candidates.

    ``keeps_best`` promises that the candidate with the highest logit stays so; ``takes_best`` that it alone
    can be chosen afterwards. A chain of stages that keep it, one of which takes it, is an argmax.
    """

    @property
    def keeps_best(self) -> bool: ...
    @property
    def takes_best(self) -> bool: ...

    def apply(self, candidates: Candidates) -> None: ...


class Selector(Protocol):
    """The end of a chain: sets the candidates' ``probs`` and chooses one."""

    def select(self, candidates: Candidates) -> int:
        """The position of the chosen candidate."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A stage or selector that wants to know every token of the sequence, the prompt's included."""

    def accept(self, token: int) -> None: ...
