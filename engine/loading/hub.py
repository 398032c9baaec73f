"""Checkpoint folders from a hub of repositories."""

from __future__ import annotations

from pathlib import Path

from ..errors import LoadError

PATTERNS = ("*.json", "*.safetensors", "*.jinja")
"""Files of a repository that serving needs."""


def download(repository: str) -> Path:
    """A local copy of a repository, ``owner/name``; a progress bar shows while it is fetched.

    A copy that is already here is used when the hub can't be reached.

    Raises:
        LoadError: the hub can't be reached or has no such repository.
    """
    import httpx
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repository, allow_patterns=list(PATTERNS)))
    except RepositoryNotFoundError:
        raise LoadError(
            f"{repository}: the hub has no such repository, or it is private (then set HF_TOKEN)"
        ) from None
    except (LocalEntryNotFoundError, httpx.TransportError):
        raise LoadError(
            f"{repository}: can't be downloaded, the hub {constants.ENDPOINT} can't be reached; "
            "give a folder or a GGUF file, or try again later"
        ) from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        detail = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise LoadError(f"{repository}: can't be downloaded: {detail}") from None
