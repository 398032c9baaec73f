"""What exists only once the model is loaded."""

from __future__ import annotations

from mlxcel.handlers.context import Context
from mlxcel.handlers.errors import ApiError


class Runtime:
    """Holds the context of the running model; requests before that are turned away.

    Attributes:
        context: None while the model loads.
    """

    def __init__(self, context: Context | None = None) -> None:
        self.context = context

    def require(self, error: type[ApiError]) -> Context:
        """The context.

        Raises:
            ApiError: 503 while the model loads, or when the engine has died.
        """
        if self.context is None:
            raise error(503, "Loading model", headers={"Retry-After": "1"})
        if not self.context.engine.is_alive:
            raise error(503, "the engine has stopped; restart the server")
        return self.context
