"""Continuous batching: which sequence gets a slot, and what one step of the engine does.

A step drops cancelled sequences, gives idle slots to waiting ones, evaluates one chunk of one prompt and decodes one
token for every sequence past its prompt. Everything here runs on the engine's thread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .errors import EngineError, GenerationError
from .runner import Floats, Runner
from .sequence import Sequence
from .slot import Slot
from .types import EngineCounters, Sample

IDLE_CHUNK = 512
"""Prompt tokens evaluated per step while nothing decodes: big enough for matrix products to run at full speed."""

NO_ROOM = "Context size has been exceeded."
"""The reference's sentence for sequences that share a context and fill it."""

BUSY_CHUNK = 256
"""Prompt tokens evaluated per step while sequences decode: how long a prompt may hold up their next token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """How many slots, and how they are used.

    ``n_slots`` slots hold up to ``n_ctx`` tokens each and ``n_total`` together. ``n_batch`` is the number of prompt
    tokens between two progress reports. A slot is preferred for its cache when at least ``prompt_similarity`` of the
    prompt is in it. With ``context_shift`` a full slot drops the older half of what it needn't keep, instead of
    ending its sequence; ``n_always_kept`` tokens (the beginning-of-sequence one) are kept beside those that a
    request asks for.
    """

    n_slots: int
    n_ctx: int
    n_total: int
    n_batch: int = 2048
    n_always_kept: int = 0
    prompt_similarity: float = 0.1
    context_shift: bool = False


class Scheduler:
    """Slots, the queue before them, and the decode batch behind them."""

    def __init__(self, runner: Runner, options: SchedulerOptions) -> None:
        self._runner = runner
        self._options = options
        self._batch = runner.new_batch()
        self._waiting: deque[Sequence] = deque()
        self._prefilling: deque[Slot] = deque()
        self._rows: list[Slot] = []
        self._clock = 0
        self.slots = [Slot(i, options.n_ctx) for i in range(options.n_slots)]
        self.counters = EngineCounters()

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence."""
        self._waiting.append(sequence)

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._prefilling or self._rows)

    def step(self) -> None:
        """Advance every sequence that can be advanced."""
        self._drop_cancelled()
        self._admit()
        self._prefill()
        self._decode()
        self.counters.requests_deferred = len(self._waiting)
        self.counters.requests_processing = len(self._prefilling) + len(self._rows)

    def fail_all(self, error: EngineError) -> None:
        """End every sequence with ``error``."""
        for sequence in self._waiting:
            sequence.mailbox.put(error)
        self._waiting.clear()
        for slot in [*self._prefilling, *self._rows]:
            self._fail(slot, error)

    def _drop_cancelled(self) -> None:
        gone = [s for s in self._waiting if s.cancelled]
        for sequence in gone:
            self._waiting.remove(sequence)
        busy = [s for s in (*self._prefilling, *self._rows) if s.sequence and s.sequence.cancelled]
        for slot in busy:
            self._release(slot)
        self.counters.cancelled += len(gone) + len(busy)

    def _admit(self) -> None:
        still_waiting: deque[Sequence] = deque()
        while self._waiting and any(slot.is_idle for slot in self.slots):
            sequence = self._waiting.popleft()
            slot = self._choose(sequence)
            if slot is None:
                still_waiting.append(sequence)
            else:
                self._begin(slot, sequence)
        self._waiting.extendleft(reversed(still_waiting))

    def _choose(self, sequence: Sequence) -> Slot | None:
        request = sequence.request
        if request.id_slot >= 0:
            asked = self.slots[request.id_slot % len(self.slots)]
            return asked if asked.is_idle else None
        idle = [slot for slot in self.slots if slot.is_idle]
        best = max(idle, key=lambda slot: slot.reusable(request))
        if best.reusable(request) > self._options.prompt_similarity * len(request.prompt):
            return best
        return min(idle, key=lambda slot: slot.last_used)

    def _begin(self, slot: Slot, sequence: Sequence) -> None:
        self._clock += 1
        n_cached = slot.reusable(sequence.request) if slot.cache is not None else 0
        if slot.cache is None:
            slot.cache = self._runner.new_sequence()
        slot.cache.truncate(n_cached)
        del slot.tokens[n_cached:]
        slot.take(sequence, self._clock)
        sequence.start(n_cached)
        self.counters.prompt_tokens_cached += n_cached
        self._prefilling.append(slot)

    def _prefill(self) -> None:
        """Evaluate prompts up to the step's share of tokens; short ones that wait are begun together."""
        share = BUSY_CHUNK if self._rows else IDLE_CHUNK
        while share > 0 and self._prefilling:
            slot = self._prefilling[0]
            try:
                share -= self._prefill_chunk(slot, share)
            except Exception as error:
                self._fail(slot, _wrapped(error))

    def _prefill_chunk(self, slot: Slot, most: int) -> int:
        """Evaluate up to ``most`` more tokens of a prompt; returns how many it were."""
        sequence, cache = slot.sequence, slot.cache
        assert sequence is not None and cache is not None
        prompt, start = sequence.request.prompt, len(slot.tokens)
        done = start - sequence.n_cached
        to_report = self._options.n_batch - done % self._options.n_batch
        end = min(len(prompt), start + min(most, to_report))
        if not self._make_room(end - start):
            raise GenerationError(NO_ROOM)
        last = end == len(prompt)
        logits = self._runner.prefill(cache, prompt[start:end], last=last)
        slot.tokens.extend(prompt[start:end])
        self.counters.prompt_tokens += end - start
        sequence.evaluated(end - start, report=last or end - start == to_report)
        if logits is None:
            return end - start
        self._prefilling.remove(slot)
        started = [slot, *self._start_followers(slot, sequence)]
        for one in started:
            self._start(one, logits.copy())
        self.counters.prompt_seconds += sequence.timings().prompt_ms / 1000
        return end - start

    def _start_followers(self, slot: Slot, leader: Sequence) -> list[Slot]:
        """Give the leader's copies idle slots and the evaluated prompt; those that get none queue up as usual."""
        assert slot.cache is not None
        followers = [one for one in leader.followers if not one.cancelled]
        leader.followers = []
        idle = sorted((s for s in self.slots if s.is_idle), key=lambda s: s.last_used)
        for one in followers[len(idle) :]:
            self._waiting.append(one)
        started = []
        for follower, free in zip(followers, idle, strict=False):
            self._clock += 1
            free.forget()
            free.cache, free.tokens = slot.cache.copy(), list(slot.tokens)
            free.take(follower, self._clock)
            follower.follow(leader)
            started.append(free)
        return started

    def _start(self, slot: Slot, logits: Floats) -> None:
        """Sample a sequence's first token and let it join the decode batch."""
        sequence, cache = slot.sequence, slot.cache
        assert sequence is not None and cache is not None
        if not self._accept(slot, sequence.sampler.sample(logits)):
            slot.row = self._batch.insert(cache)
            slot.cache = None
            self._rows.append(slot)

    def _shift_full(self) -> None:
        """Make room in slots that have none for another token."""
        for slot in [s for s in self._rows if self._options.context_shift and s.is_full]:
            sequence = slot.sequence
            assert sequence is not None
            request = sequence.request
            keep = len(request.prompt) if request.n_keep < 0 else request.n_keep
            keep = min(keep + self._options.n_always_kept, slot.n_ctx - 4, len(slot.tokens) - 1)
            drop = request.n_discard or (len(slot.tokens) - keep) // 2
            drop = max(1, min(drop, len(slot.tokens) - keep - 1))
            cache = self._batch.remove(slot.row)
            self._close_gap(slot)
            assert cache is not None
            cache.drop(keep, drop, self._runner.ropes)
            del slot.tokens[keep : keep + drop]
            sequence.truncated = True
            slot.row = self._batch.insert(cache)
            self._rows.append(slot)

    def _decode(self) -> None:
        if not self._rows:
            return
        try:
            self._shift_full()
            self._make_room_for_rows()
            if not self._rows:
                return
            newest = [slot.sequence.tokens[-1] for slot in self._rows if slot.sequence]
            logits = self._runner.decode(self._batch, newest)
        except Exception as error:
            wrapped = _wrapped(error)
            for slot in list(self._rows):
                self._fail(slot, wrapped)
            return
        self.counters.decode_calls += 1
        self.counters.busy_slots += len(self._rows)
        for slot, token, row in [(s, newest[s.row], logits[s.row]) for s in self._rows]:
            slot.tokens.append(token)
            assert slot.sequence is not None
            try:
                self._accept(slot, slot.sequence.sampler.sample(row))
            except Exception as error:
                self._fail(slot, _wrapped(error))

    def _accept(self, slot: Slot, sample: Sample) -> bool:
        """Hand a sampled token to the slot's sequence; release the slot when that ends it."""
        sequence = slot.sequence
        assert sequence is not None
        has_room = self._options.context_shift or not slot.is_full
        over = sequence.accept(sample, has_room=has_room)
        self.counters.predicted_tokens += 1
        self.counters.longest_sequence = max(self.counters.longest_sequence, len(slot.tokens) + 1)
        if over:
            self.counters.predicted_seconds += sequence.timings().predicted_ms / 1000
            n_cached = len(slot.tokens)
            self._release(slot)
            sequence.finish(slot.id, n_cached)
        return over

    def _release(self, slot: Slot, *, keep: bool = True) -> None:
        if slot in self._prefilling:
            self._prefilling.remove(slot)
        cache = slot.cache if keep else None
        if slot.row >= 0:
            cache = self._batch.remove(slot.row, keep=keep)
            self._close_gap(slot)
        slot.release(cache)

    def _close_gap(self, slot: Slot) -> None:
        """Follow the batch: its last row has taken the place of the one removed."""
        last = self._rows.pop()
        if last is not slot:
            last.row = slot.row
            self._rows[slot.row] = last

    def _fail(self, slot: Slot, error: EngineError) -> None:
        sequence = slot.sequence
        # Its cache may be half written, so nothing of it is kept.
        self._release(slot, keep=False)
        if sequence is not None:
            sequence.mailbox.put(error)

    def _make_room_for_rows(self) -> None:
        """See that every row can grow by a token; when they can't all, the newest sequences are ended."""
        while self._rows and not self._make_room(len(self._rows)):
            newest = max(self._rows, key=lambda slot: slot.last_used)
            self._fail(newest, GenerationError(NO_ROOM))

    def _make_room(self, n: int) -> bool:
        """Forget the caches of idle slots, oldest first, until ``n`` more tokens fit into the context budget."""
        held = sum(len(slot.tokens) for slot in self.slots)
        idle = sorted((s for s in self.slots if s.is_idle and s.tokens), key=lambda s: s.last_used)
        for slot in idle:
            if held + n <= self._options.n_total:
                break
            held -= len(slot.tokens)
            slot.forget()
        return held + n <= self._options.n_total


def _wrapped(error: Exception) -> EngineError:
    return error if isinstance(error, EngineError) else GenerationError(f"generation failed: {error}")
