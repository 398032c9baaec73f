"""One request under way: what it has generated, when it must stop, and the events that tell about it."""

from __future__ import annotations

import time
from typing import Protocol

from .sampling import Sampler
from .text import TextAssembler
from .tokenizer import Tokenizer
from .types import Event, Finished, GenerationRequest, Progress, Sample, StopType, Timings, Token


class Mailbox(Protocol):
    """Where a sequence's events go. ``put`` may be called from the engine's thread only."""

    def put(self, event: Event | Exception) -> None: ...


class Sequence:
    """The life of one :class:`GenerationRequest` from admission to :class:`Finished`.

    ``tokens`` are the generated IDs, of which the newest isn't in the cache yet. ``cancelled`` may be set from any
    thread; the scheduler looks at it between steps. ``followers`` are copies that share the prompt's evaluation.
    """

    def __init__(
        self, request: GenerationRequest, sampler: Sampler, tokenizer: Tokenizer, mailbox: Mailbox, task: int
    ) -> None:
        self.request = request
        self.sampler = sampler
        self.mailbox = mailbox
        self.task = task
        self.cancelled = False
        self.tokens: list[int] = []
        self.n_cached = 0
        self.n_evaluated = 0
        self.truncated = False
        self.followers: list[Sequence] = []
        self._tokenizer = tokenizer
        self._text = TextAssembler(request.stop, n_indent=request.n_indent)
        self._logprobs: list[Sample] = []
        self._unsent: list[Sample] = []
        self._stop_type: StopType = "none"
        self._stopping_word = ""
        self._started = self._generating = self._newest = 0.0

    def start(self, n_cached: int) -> None:
        """Begin with the prompt, of which ``n_cached`` tokens are in the slot's cache."""
        self._started = time.perf_counter()
        self.n_cached = self.n_evaluated = n_cached
        for token in self.request.prompt:
            self.sampler.accept(token, generated=False)
        self._report_progress()

    def evaluated(self, n: int, *, report: bool) -> None:
        """Count ``n`` more prompt tokens as evaluated."""
        self.n_evaluated += n
        if report:
            self._report_progress()

    def follow(self, leader: Sequence) -> None:
        """Take over what ``leader`` has made of the prompt."""
        self._started = leader._started
        self.n_cached, self.n_evaluated = leader.n_cached, leader.n_evaluated
        for token in self.request.prompt:
            self.sampler.accept(token, generated=False)

    def _report_progress(self) -> None:
        if self.request.return_progress:
            elapsed = int((time.perf_counter() - self._started) * 1000)
            self.mailbox.put(Progress(len(self.request.prompt), self.n_cached, self.n_evaluated, elapsed))

    def accept(self, sample: Sample, *, has_room: bool) -> bool:
        """Take the next sampled token and post the events that follow from it.

        Args:
            has_room: whether the slot's context can hold this token.

        Returns:
            True when the sequence is over; :meth:`finish` posts its last event.
        """
        now = time.perf_counter()
        if not self.tokens:
            self._generating = now
        self._newest = now
        self.tokens.append(sample.token)
        self.sampler.accept(sample.token, generated=True)
        ends = sample.token in self._tokenizer.eog_ids
        piece = self._tokenizer.piece(sample.token, special=self.request.special)
        shown = self._text.feed(sample.token, piece, end=ends)
        if self.request.sampling.n_probs > 0:
            self._unsent.append(sample)
        if shown is not None:
            if shown.word is not None:
                self._stop("word", shown.word)
            self._post(shown.text, stopped=shown.word is not None)
        self._check_limits(has_room, new_line=shown is not None and "\n" in shown.text)
        if ends:
            self._stop("eos")
        return self._stop_type != "none"

    def _post(self, text: str, *, stopped: bool) -> None:
        logprobs = tuple(self._unsent)
        self._logprobs.extend(logprobs)
        self._unsent.clear()
        self.mailbox.put(
            Token(
                text=text,
                tokens=(self.tokens[-1],),
                n_decoded=len(self.tokens),
                timings=self.timings(),
                logprobs=logprobs,
                stopped=stopped,
            )
        )

    def _check_limits(self, has_room: bool, *, new_line: bool) -> None:
        request = self.request
        if self._stop_type != "none":
            return
        if not has_room:
            self.truncated = True
            self._stop("limit")
        elif (
            0 <= request.n_predict <= len(self.tokens)
            or self._text.indent_ended
            or (new_line and 0 < request.t_max_predict_ms < (self._newest - self._generating) * 1000)
        ):
            self._stop("limit")

    def _stop(self, stop_type: StopType, word: str = "") -> None:
        self._stop_type = stop_type
        self._stopping_word = word

    def finish(self, id_slot: int, n_cached: int) -> None:
        """Post :class:`Finished`; the slot ``id_slot`` holds ``n_cached`` tokens."""
        held = self._text.finish()
        logprobs = self._logprobs
        if self._stop_type == "word" and logprobs:
            hidden = len(self._tokenizer.encode(self._stopping_word, add_special=False, parse_special=False))
            logprobs = logprobs[: max(0, len(logprobs) - hidden)]
        self.mailbox.put(
            Finished(
                text=held,
                content=self._text.content,
                tokens=tuple(self.tokens),
                logprobs=tuple(logprobs),
                stop_type=self._stop_type,
                stopping_word=self._stopping_word,
                has_new_line=self._text.has_new_line,
                truncated=self.truncated,
                n_prompt=len(self.request.prompt),
                n_decoded=len(self.tokens),
                n_cached=n_cached,
                id_slot=id_slot,
                timings=self.timings(),
            )
        )

    def timings(self) -> Timings:
        """Counts and durations so far."""
        return Timings(
            cache_n=self.n_cached,
            prompt_n=self.n_evaluated - self.n_cached,
            prompt_ms=(self._generating - self._started) * 1000,
            predicted_n=len(self.tokens),
            # The reference's floor: a first token takes no measurable time.
            predicted_ms=max(0.001, (self._newest - self._generating) * 1000),
        )

    @property
    def has_new_line(self) -> bool:
        """Whether the text shown so far has a line break."""
        return self._text.has_new_line
