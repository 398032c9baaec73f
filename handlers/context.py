"""What a handler is given besides its request."""

from __future__ import annotations

from dataclasses import dataclass

from mlxcel.engine.engine import Engine
from mlxcel.generated.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The running server, as handlers see it.

    Attributes:
        engine: the model.
        options: the command line, resolved.
        alias: name under which the model is shown.
        aliases: all names it has.
        started_at: Unix time of start-up, seconds.
    """

    engine: Engine
    options: Options
    alias: str
    aliases: tuple[str, ...]
    started_at: int
