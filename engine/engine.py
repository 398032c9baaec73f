"""The one way in: an asyncio face on the thread that owns MLX."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import mlx.core as mx

from . import blas
from .chat_template import ChatTemplate
from .errors import ContextExceededError, EngineError, InvalidRequestError, UnavailableError
from .generation import Generation, Mailbox
from .loading import LoadedModel
from .pooling import normalize, pool
from .runner import Runner
from .sampling import Sampler
from .scheduler import Scheduler, SchedulerOptions
from .sequence import Sequence
from .threads import Threads
from .types import (
    RANDOM_SEED,
    Embedding,
    EmbeddingRequest,
    EngineCounters,
    Event,
    Finished,
    GenerationRequest,
    ModelInfo,
    Pooling,
    SlotState,
    Timings,
)

logger = logging.getLogger(__name__)

INLINE_TEXT = 2048
"""Characters up to which a text is tokenized on the event loop; longer ones go to a worker thread."""

AUTO_SLOTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How to run a model.

    ``n_parallel`` slots share ``n_ctx`` tokens evenly; below 1 there are four slots and each may use all of them.
    ``n_ctx`` 0 is the model's own context. ``pooling`` None is the checkpoint's, or ``mean``. ``context_shift``
    lets a full context drop its older half. ``threads`` is how many the matrix library may
    use on the CPU, below 1 one a core. ``chat_template`` replaces the checkpoint's.
    """

    n_parallel: int = -1
    n_ctx: int = 0
    n_batch: int = 2048
    pooling: Pooling | None = None
    prompt_similarity: float = 0.1
    context_shift: bool = False
    threads: int = -1
    chat_template: str | None = None

    def for_scheduler(self, info: ModelInfo) -> SchedulerOptions:
        """The slots that these options give a model."""
        total = self.n_ctx or info.n_ctx_train
        n_slots = self.n_parallel if self.n_parallel > 0 else AUTO_SLOTS
        return SchedulerOptions(
            n_slots=n_slots,
            n_ctx=total // n_slots if self.n_parallel > 0 else total,
            n_total=total,
            n_batch=self.n_batch,
            prompt_similarity=self.prompt_similarity,
            context_shift=self.context_shift,
        )


class Engine:
    """A model with its tokenizer, slots and thread.

    Start it with :meth:`start`; any number of coroutines may then call :meth:`generate` and :meth:`embed`.
    """

    def __init__(self, model: LoadedModel, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self.info = model.info
        self.tokenizer = model.tokenizer
        self.chat_template = ChatTemplate(
            self.options.chat_template or model.chat_template_source,
            bos_token=model.tokenizer.bos_token,
            eos_token=model.tokenizer.eos_token,
            add_bos=model.tokenizer.add_bos,
            add_eos=model.tokenizer.add_eos,
        )
        slots = self.options.for_scheduler(model.info)
        if model.tokenizer.add_bos:
            slots = replace(slots, n_always_kept=1)
        self.n_slots, self.n_ctx = slots.n_slots, slots.n_ctx
        self.pooling: Pooling = self.options.pooling or model.info.pooling or "mean"
        self._runner = Runner(model.model, _threads(self.options.threads))
        self._scheduler = Scheduler(self._runner, slots)
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._jobs: deque[Callable[[], None]] = deque()
        self._outbox: list[tuple[Mailbox, Event | Exception]] = []
        self._tasks = itertools.count()
        self._thread = threading.Thread(target=self._run, name="mlxcel-engine", daemon=True)

    def start(self) -> None:
        """Start the engine's thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the current step; unfinished requests get :class:`UnavailableError`."""
        self._inbox.put(None)
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the engine's thread runs."""
        return self._thread.is_alive()

    def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Generate one sequence.

        Returns:
            An iterator that ends with :class:`Finished`. Closing it early frees the slot before the next step.

        Raises:
            InvalidRequestError: the prompt holds unknown token IDs.
            ContextExceededError: the prompt doesn't fit into a slot.
            EngineError: from the iterator, when a grammar is bad or generation fails.
        """
        self._check_tokens(request.prompt, "prompt")
        return self._generate(request)

    def _check_tokens(self, tokens: tuple[int, ...], field: str) -> None:
        if tokens and (max(tokens) >= self.tokenizer.n_vocab or min(tokens) < 0):
            raise InvalidRequestError("Prompt contains invalid tokens", field)
        if len(tokens) >= self.n_ctx:
            raise ContextExceededError(len(tokens), self.n_ctx)

    async def _generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        [generation] = await self.generate_copies(request, 1)
        async with aclosing(generation):
            async for event in generation:
                yield event

    async def generate_copies(self, request: GenerationRequest, n: int) -> list[Generation]:
        """Generate ``n`` sequences from one prompt, which is evaluated once.

        They run from now on, so each must be read to its end or closed. A seed that isn't random differs by one
        from copy to copy.

        Raises:
            EngineError: as :meth:`generate`.
        """
        self._check_tokens(request.prompt, "prompt")
        mailboxes = [Mailbox(self._outbox) for _ in range(n)]
        if not request.prompt:
            for mailbox in mailboxes:
                mailbox.queue.put_nowait(_nothing(request))
            return [Generation(mailbox, None) for mailbox in mailboxes]
        wanted = [copy_of(request, number) for number in range(n)]
        samplers = [await self._sampler(one) for one in wanted]
        sequences = [
            Sequence(one, sampler, self.tokenizer, mailbox, next(self._tasks))
            for one, sampler, mailbox in zip(wanted, samplers, mailboxes, strict=True)
        ]
        sequences[0].followers = sequences[1:]
        self._submit(lambda: self._scheduler.add(sequences[0]))
        return [Generation(*pair) for pair in zip(mailboxes, sequences, strict=True)]

    async def _sampler(self, request: GenerationRequest) -> Sampler:
        settings = request.sampling
        if settings.grammar or settings.json_schema is not None:
            # A big grammar takes its time to compile.
            return await asyncio.to_thread(Sampler, settings, self.tokenizer)
        return Sampler(settings, self.tokenizer)

    async def embed(self, request: EmbeddingRequest) -> list[Embedding]:
        """Embed texts, one at a time between the steps of running sequences.

        Raises:
            InvalidRequestError: an input is empty or holds unknown token IDs.
            ContextExceededError: an input is longer than the context.
        """
        for tokens in request.inputs:
            self._check_tokens(tokens, "input")
            if not tokens:
                raise InvalidRequestError("Input content cannot be empty", "input")
        loop = asyncio.get_running_loop()
        pooling = request.pooling or self.pooling
        futures: list[asyncio.Future[Embedding]] = []
        for index, tokens in enumerate(request.inputs):
            future: asyncio.Future[Embedding] = loop.create_future()
            futures.append(future)
            self._submit(self._embedding_job(index, tokens, pooling, request.normalize, future))
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()

    def _embedding_job(
        self,
        index: int,
        tokens: tuple[int, ...],
        pooling: Pooling,
        norm: int,
        future: asyncio.Future[Embedding],
    ) -> Callable[[], None]:
        loop = future.get_loop()

        def settle(result: Embedding | Exception) -> None:
            if future.done():
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        def job() -> None:
            if future.cancelled():
                return
            result: Embedding | Exception
            try:
                # Per-token vectors are never normalised by the reference.
                vectors = pool(self._runner.hidden_states(tokens), pooling)
                vectors = vectors if pooling == "none" else normalize(vectors, norm)
                result = Embedding(index, tuple(map(tuple, vectors.tolist())), len(tokens))
            except Exception as error:
                result = error
            loop.call_soon_threadsafe(settle, result)

        return lambda: self._jobs.append(job)

    async def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token IDs of ``text``; long texts are tokenized off the event loop."""
        if len(text) <= INLINE_TEXT:
            return self.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)
        return await asyncio.to_thread(
            self.tokenizer.encode, text, add_special=add_special, parse_special=parse_special
        )

    def slots(self) -> list[SlotState]:
        """A snapshot of every slot."""
        return [slot.state() for slot in self._scheduler.slots]

    def counters(self) -> EngineCounters:
        """A snapshot of the totals since start-up."""
        return replace(self._scheduler.counters)

    def _submit(self, command: Callable[[], None]) -> None:
        if not self._thread.is_alive():
            raise UnavailableError("the engine is not running")
        self._inbox.put(command)

    def _run(self) -> None:
        error: EngineError = UnavailableError("the server is shutting down")
        try:
            while self._take_commands():
                if self._jobs:
                    self._jobs.popleft()()
                self._scheduler.step()
                self._deliver()
        except BaseException:
            logger.exception("the engine's thread has died")
            error = UnavailableError("the engine has failed; restart the server")
            raise
        finally:
            self._scheduler.fail_all(error)
            self._deliver()
            # MLX has given this thread a worker of its own; left alive, it aborts the process at its end.
            mx.clear_streams()

    def _take_commands(self) -> bool:
        """Run what was submitted, waiting for something to do; false when it is time to stop."""
        block = not (self._scheduler.has_work or self._jobs)
        try:
            while True:
                command = self._inbox.get(block=block)
                if command is None:
                    return False
                command()
                block = False
        except queue.Empty:
            return True

    def _deliver(self) -> None:
        """Hand the step's events over, one call an event loop."""
        if not self._outbox:
            return
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Mailbox, Event | Exception]]] = {}
        for mailbox, event in self._outbox:
            by_loop.setdefault(mailbox.loop, []).append((mailbox, event))
        self._outbox.clear()
        for loop, events in by_loop.items():
            try:
                loop.call_soon_threadsafe(_fill, events)
            except RuntimeError:
                # The loop has closed; nobody is left to read.
                for mailbox, _ in events:
                    logger.debug("event for a closed loop dropped: %r", mailbox)


def _threads(asked: int) -> Threads | None:
    if blas.loaded() != "openblas":
        return None
    return Threads(asked if asked > 0 else os.cpu_count() or 1, blas.set_threads)


def copy_of(request: GenerationRequest, number: int) -> GenerationRequest:
    """The request of copy ``number``: only the first may ask for a slot, and fixed seeds differ."""
    if number == 0:
        return request
    seed = request.sampling.seed
    if seed != RANDOM_SEED:
        seed = (seed + number) % 2**32
    return replace(request, id_slot=-1, sampling=replace(request.sampling, seed=seed))


def _nothing(request: GenerationRequest) -> Finished:
    """What the reference makes of a prompt without tokens: an answer without tokens."""
    return Finished(
        text="",
        content="",
        tokens=(),
        logprobs=(),
        stop_type="none",
        stopping_word="",
        has_new_line=False,
        truncated=False,
        n_prompt=0,
        n_decoded=0,
        n_cached=0,
        id_slot=max(0, request.id_slot),
        timings=Timings(0, 0, 0.0, 0, 0.0),
    )


def _fill(events: list[tuple[Mailbox, Event | Exception]]) -> None:
    for mailbox, event in events:
        mailbox.queue.put_nowait(event)
