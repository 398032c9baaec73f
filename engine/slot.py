"""A slot: one place in the server that works on one sequence at a time and remembers the last one's cache."""

from __future__ import annotations

from collections.abc import Sequence as Tokens

from .cache import SequenceCache
from .sequence import Sequence
from .types import GenerationRequest, SlotState


def common_prefix(a: Tokens[int], b: Tokens[int]) -> int:
    """How many leading tokens two lists share."""
    limit = min(len(a), len(b))
    if list(a[:limit]) == list(b[:limit]):
        return limit
    return next(i for i in range(limit) if a[i] != b[i])


class Slot:
    """State of one slot.

    ``tokens`` are the IDs whose keys and values are held: in ``cache`` while the slot is idle or prefills, in the
    decode batch's row ``row`` while it decodes (then ``cache`` is None).
    """

    def __init__(self, id: int, n_ctx: int) -> None:
        self.id = id
        self.n_ctx = n_ctx
        self.tokens: list[int] = []
        self.cache: SequenceCache | None = None
        self.row = -1
        self.sequence: Sequence | None = None
        self.last_used = 0
        self._last: tuple[int, GenerationRequest] | None = None

    @property
    def is_idle(self) -> bool:
        return self.sequence is None

    def take(self, sequence: Sequence, clock: int) -> None:
        """Begin to work on ``sequence``."""
        self.sequence = sequence
        self.last_used = clock
        self._last = (sequence.task, sequence.request)

    def release(self, cache: SequenceCache | None) -> None:
        """Go idle, keeping ``cache`` (of the tokens in :attr:`tokens`) for the next sequence."""
        self.sequence = None
        self.row = -1
        self.cache = cache
        if cache is None:
            self.tokens = []
        else:
            del self.tokens[len(cache) :]

    @property
    def is_full(self) -> bool:
        """Whether the newest token has no place left."""
        return len(self.tokens) + 1 >= self.n_ctx

    def forget(self) -> None:
        """Drop what an idle slot remembers."""
        self.cache = None
        self.tokens = []

    def reusable(self, request: GenerationRequest) -> int:
        """Leading prompt tokens that needn't be evaluated; at least one is left, to have logits from."""
        if not request.cache_prompt:
            return 0
        return min(common_prefix(self.tokens, request.prompt), len(request.prompt) - 1)

    def state(self) -> SlotState:
        """A snapshot for ``GET /slots``."""
        if self._last is None:
            return SlotState(id=self.id, n_ctx=self.n_ctx, is_processing=False)
        task, request = self._last
        live = self.sequence
        return SlotState(
            id=self.id,
            n_ctx=self.n_ctx,
            is_processing=live is not None,
            id_task=task,
            n_prompt_tokens=len(live.request.prompt) if live else len(self.tokens),
            n_prompt_tokens_processed=live.n_evaluated - live.n_cached if live else 0,
            n_prompt_tokens_cache=live.n_cached if live else 0,
            n_decoded=len(live.tokens) if live else 0,
            n_remain=request.n_predict - len(live.tokens) if live and request.n_predict >= 0 else -1,
            has_next_token=live is not None,
            has_new_line=live.has_new_line if live else False,
            request=request,
        )
