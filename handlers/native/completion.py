"""``/completion``: llama-server's own completion, whole, projected or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from mlxcel.engine.engine import copy_of
from mlxcel.engine.types import Finished, GenerationRequest, Progress, Sample, Token
from mlxcel.generated.native import models, routes

from ..common import figures
from ..common.generation import finished, merged, primed, started
from ..common.prompts import tokenize_prompts
from ..common.requests import generation_request, refuse_adapters
from ..common.settings import SurfaceSettings, generation_settings
from ..common.whole import whole_fields
from ..context import Context
from .projection import projected

Answer = models.Completion | models.Projection
Frame = models.CompletionChunk | models.Completion | models.Projection | models.Error


@routes.completion_create
async def create(
    request: models.CompletionRequest, ctx: Context
) -> (
    models.Completion | models.Projection | list[models.Completion | models.Projection] | AsyncIterator[Frame]
):
    """Complete every prompt, ``n_cmpl`` times each."""
    refuse_adapters(request)
    prompts = await tokenize_prompts(ctx.engine, request.prompt)
    wanted = [
        generation_request(request, ctx, tokens, progress=request.return_progress and request.stream)
        for tokens in prompts
    ]
    streams = await started(ctx.engine, wanted, request.n_cmpl)
    printer = _Printer(request, ctx, wanted)
    if request.stream:
        return await primed(printer.frames(merged(streams)))
    answers = [printer.answer(index, end) for index, end in enumerate(await finished(streams))]
    return answers[0] if len(answers) == 1 else answers


@dataclass(frozen=True, slots=True)
class _Printer:
    """Writes the events of a request's sequences as the reference does."""

    request: models.CompletionRequest
    ctx: Context
    wanted: list[GenerationRequest]

    def _wanted(self, index: int) -> GenerationRequest:
        return copy_of(self.wanted[index // self.request.n_cmpl], index % self.request.n_cmpl)

    async def frames(self, events: AsyncGenerator[tuple[int, Any], None]) -> AsyncGenerator[Frame, None]:
        async with aclosing(events):
            async for index, event in events:
                match event:
                    case Progress():
                        yield self._progress(index, event)
                    case Token():
                        yield self._chunk(index, event)
                    case Finished():
                        if event.text:
                            yield self._flushed(index, event)
                        yield self.answer(index, event)

    def answer(self, index: int, end: Finished) -> Answer:
        request, wanted = self.request, self._wanted(index)
        surface = SurfaceSettings(
            stream=request.stream,
            timings_per_token=request.timings_per_token,
            reasoning_format=request.reasoning_format or "deepseek",
            grammar_lazy=request.grammar_lazy,
        )
        completion = models.Completion(
            **whole_fields(index, end, wanted, self.ctx),
            generation_settings=msgspec.convert(
                generation_settings(wanted, surface), models.GenerationSettings
            ),
            timings=msgspec.convert(figures.timings(end.timings), models.Timings),
        )
        if request.stream:
            completion.content = ""
        if request.stream or not request.return_tokens:
            completion.tokens = []
        if end.logprobs and not request.stream:
            completion.completion_probabilities = self._probabilities(end.logprobs)
        return projected(completion, request.response_fields) if request.response_fields else completion

    def _progress(self, index: int, event: Progress) -> models.CompletionChunk:
        # The reference's frames before the first token carry token 0.
        chunk = self._frame(index, "", [0], 0)
        chunk.prompt_progress = models.PromptProgress(
            total=event.total, cache=event.cache, processed=event.processed, time_ms=event.time_ms
        )
        return chunk

    def _chunk(self, index: int, event: Token) -> models.CompletionChunk:
        chunk = self._frame(index, event.text, list(event.tokens), event.n_decoded)
        if self.request.timings_per_token or event.stopped:
            chunk.timings = msgspec.convert(figures.timings(event.timings), models.Timings)
        if event.logprobs:
            chunk.completion_probabilities = self._probabilities(event.logprobs)
        return chunk

    def _flushed(self, index: int, end: Finished) -> models.CompletionChunk:
        return self._frame(index, end.text, [], end.n_decoded)

    def _frame(self, index: int, text: str, tokens: list[int], n_decoded: int) -> models.CompletionChunk:
        return models.CompletionChunk(
            index=index,
            content=text,
            tokens=tokens,
            id_slot=-1,
            tokens_predicted=n_decoded,
            tokens_evaluated=len(self._wanted(index).prompt),
        )

    def _probabilities(self, samples: tuple[Sample, ...]) -> list[models.TokenProbabilities]:
        linear = self.request.post_sampling_probs
        kind: type[models.TokenProbs | models.TokenLogprobs] = (
            models.TokenProbs if linear else models.TokenLogprobs
        )
        entries = figures.probabilities(samples, self.ctx.engine.tokenizer, linear=linear)
        return [msgspec.convert(entry, kind) for entry in entries]
