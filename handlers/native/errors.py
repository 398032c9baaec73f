"""The native surface's error envelope."""

from __future__ import annotations

from typing import Any

from ..errors import ApiError

DISABLED = "feature_disabled"


class NativeError(ApiError):
    """An error as llama-server writes it."""

    def envelope(self) -> dict[str, Any]:
        error = {"code": self.status, "message": self.message, "type": self.type, **self.extra}
        if self.type == DISABLED:
            # The one error that the reference writes without a code.
            del error["code"]
        return {"error": error}
