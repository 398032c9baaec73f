"""The OpenAI surface's error envelope."""

from __future__ import annotations

from typing import Any

from ..errors import ApiError


class OpenAIError(ApiError):
    """An error as OpenAI writes it; ``code`` is the status, as the reference has it."""

    def envelope(self) -> dict[str, Any]:
        return {
            "error": {
                "code": self.status,
                "message": self.message,
                "type": self.type,
                "param": self.field or None,
                **self.extra,
            }
        }
