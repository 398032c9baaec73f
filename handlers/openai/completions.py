"""``/v1/completions``: OpenAI's legacy completion."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from mlxcel.engine.types import Finished, GenerationRequest, Sample, Token
from mlxcel.generated.openai import models, routes

from ..common.generation import finished, merged, primed, started
from ..common.prompts import tokenize_prompts
from ..common.requests import generation_request, refuse_adapters
from ..common.settings import SurfaceSettings
from ..context import Context
from . import parts


@routes.completions_create
async def create(
    request: models.TextCompletionRequest, ctx: Context
) -> models.TextCompletion | AsyncIterator[models.TextCompletionChunk | models.Error]:
    """Complete every prompt, ``n`` times each."""
    refuse_adapters(request)
    prompts = await tokenize_prompts(ctx.engine, request.prompt)
    wanted = [generation_request(request, ctx, tokens) for tokens in prompts]
    streams = await started(ctx.engine, wanted, request.n_cmpl)
    printer = _Printer(request, ctx, wanted, parts.Stamp(ctx.alias))
    if request.stream:
        return await primed(printer.chunks(merged(streams)))
    return printer.whole(await finished(streams), len(prompts))


@dataclass(frozen=True, slots=True)
class _Printer:
    request: models.TextCompletionRequest
    ctx: Context
    wanted: list[GenerationRequest]
    stamp: parts.Stamp

    def whole(self, ends: list[Finished], n_prompts: int) -> models.TextCompletion:
        answer = models.TextCompletion(
            choices=[self._choice(index, end.content, end, end.logprobs) for index, end in enumerate(ends)],
            created=self.stamp.created,
            model=self.stamp.model,
            system_fingerprint=parts.FINGERPRINT,
            usage=parts.usage(ends, n_prompts),
            id=self.stamp.id,
            timings=parts.timings(ends[0]),
        )
        if self.request.verbose:
            answer.field__verbose = self._verbose(0, ends[0])
        return answer

    async def chunks(
        self, events: AsyncGenerator[tuple[int, Any], None]
    ) -> AsyncGenerator[models.TextCompletionChunk, None]:
        offsets = [0] * len(self.wanted) * self.request.n_cmpl
        async with aclosing(events):
            async for index, event in events:
                if isinstance(event, Token):
                    yield self._chunk(index, event.text, None, event.logprobs, offsets[index])
                    offsets[index] += len(event.text)
                elif isinstance(event, Finished):
                    if event.text:
                        yield self._chunk(index, event.text, None, (), offsets[index])
                    yield self._last(index, event)

    def _last(self, index: int, end: Finished) -> models.TextCompletionChunk:
        chunk = self._chunk(index, "", end, (), 0)
        chunk.usage = parts.usage([end])
        chunk.timings = parts.timings(end)
        if self.request.verbose:
            chunk.field__verbose = self._verbose(index, end)
        return chunk

    def _chunk(
        self, index: int, text: str, end: Finished | None, samples: tuple[Sample, ...], offset: int
    ) -> models.TextCompletionChunk:
        return models.TextCompletionChunk(
            choices=[self._choice(index, text, end, samples, offset)],
            created=self.stamp.created,
            model=self.stamp.model,
            system_fingerprint=parts.FINGERPRINT,
            id=self.stamp.id,
        )

    def _choice(
        self, index: int, text: str, end: Finished | None, samples: tuple[Sample, ...], offset: int = 0
    ) -> models.TextChoice:
        return models.TextChoice(
            text=text,
            index=index,
            logprobs=self._logprobs(samples, offset) if samples else None,
            finish_reason=parts.finish_reason(end) if end else None,
        )

    def _logprobs(self, samples: tuple[Sample, ...], offset: int) -> models.TextLogprobs:
        """The reference's entries, and OpenAI's legacy lists beside them."""
        linear = self.request.post_sampling_probs
        answer = models.TextLogprobs(content=parts.probabilities(samples, self.ctx, linear=linear))
        if linear:
            return answer
        texts = [self._text(sample.token) for sample in samples]
        answer.tokens = texts
        answer.token_logprobs = [sample.probability for sample in samples]
        answer.top_logprobs = [{self._text(c.token): c.value for c in sample.top} for sample in samples]
        answer.text_offset = [offset + sum(map(len, texts[:i])) for i in range(len(texts))]
        return answer

    def _text(self, token: int) -> str:
        return self.ctx.engine.tokenizer.decode([token])

    def _verbose(self, index: int, end: Finished) -> models.Completion:
        surface = SurfaceSettings(
            stream=self.request.stream, timings_per_token=self.request.timings_per_token
        )
        return parts.verbose(index, end, self.wanted[index // self.request.n_cmpl], self.ctx, surface)
