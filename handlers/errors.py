"""The error of a surface: what went wrong, told so that a client can mend it."""

from __future__ import annotations

from typing import Any, Self

from mlxcel.engine.errors import (
    ContextExceededError,
    EngineError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedError,
)

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}
"""The reference's word for each status."""


class ApiError(Exception):
    """An error answer. Each surface has a subclass that writes its envelope.

    Attributes:
        status: HTTP status; client mistakes are 4xx.
        message: one sentence, with the remedy.
        field: path of the request field at fault, such as ``lora[0].scale``; "" if none.
        type: the reference's word for the kind of error.
        extra: further members of the envelope.
        headers: further response headers.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str = "",
        type: str | None = None,
        extra: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.type = type or TYPES.get(status, "server_error")
        self.extra = extra or {}
        self.headers = headers or {}

    def envelope(self) -> dict[str, Any]:
        """The body of the answer."""
        raise NotImplementedError

    @classmethod
    def from_engine(cls, error: EngineError) -> Self:
        """The surface's form of what the engine raised."""
        match error:
            case ContextExceededError():
                counts = {"n_prompt_tokens": error.n_prompt_tokens, "n_ctx": error.n_ctx}
                return cls(400, error.message, type="exceed_context_size_error", extra=counts)
            case InvalidRequestError():
                return cls(400, error.message, field=error.field)
            case UnsupportedError():
                return cls(501, error.message)
            case UnavailableError():
                return cls(503, error.message, headers={"Retry-After": "1"})
            case _:
                return cls(500, error.message)
