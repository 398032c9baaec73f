"""``/v1/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.types import Finished, GenerationRequest, Progress, Sample, Token
from mlxcel.generated.openai import models, routes

from ..common.chat import render
from ..common.generation import finished, merged, primed, started
from ..common.requests import generation_request, refuse_adapters
from ..common.settings import SurfaceSettings
from ..context import Context
from . import parts

ANY_OBJECT = '{"type": "object"}'
DEFAULT_TOP_LOGPROBS = 20


@routes.chat_completions_create
async def create(
    request: models.ChatCompletionRequest, ctx: Context
) -> models.ChatCompletion | AsyncIterator[models.ChatCompletionChunk | models.Error]:
    """Answer a conversation, ``n`` times."""
    refuse_adapters(request)
    wanted = await _wanted(request, ctx)
    streams = await started(ctx.engine, [wanted], request.n_cmpl)
    printer = _Printer(request, ctx, wanted, parts.Stamp(ctx.alias))
    if request.stream:
        return await primed(printer.chunks(merged(streams)))
    return printer.whole(await finished(streams))


@routes.chat_completions_count_tokens
async def count_tokens(request: models.ChatCompletionRequest, ctx: Context) -> models.InputTokens:
    """Tokens of the prompt that the conversation would be answered from."""
    return models.InputTokens(input_tokens=len(await _prompt(request, ctx)))


async def _prompt(request: models.ChatCompletionRequest, ctx: Context) -> tuple[int, ...]:
    text = render(request, ctx)
    return tuple(await ctx.engine.tokenize(text, add_special=True, parse_special=True))


async def _wanted(request: models.ChatCompletionRequest, ctx: Context) -> GenerationRequest:
    progress = request.return_progress and request.stream
    wanted = generation_request(request, ctx, await _prompt(request, ctx), progress=progress)
    sampling = replace(wanted.sampling, n_probs=_n_probs(request))
    schema = _schema(request.response_format)
    if schema is not None:
        if sampling.grammar or sampling.json_schema is not None:
            raise InvalidRequestError(
                "Field 'response_format': can't be combined with grammar or json_schema; send one of them",
                "response_format",
            )
        sampling = replace(sampling, json_schema=schema)
    return replace(wanted, sampling=sampling)


def _n_probs(request: models.ChatCompletionRequest) -> int:
    if request.top_logprobs is not None and not request.logprobs:
        raise InvalidRequestError("Field 'top_logprobs': requires logprobs to be set to true", "top_logprobs")
    if not request.logprobs:
        return request.n_probs
    wanted = DEFAULT_TOP_LOGPROBS if request.top_logprobs is None else request.top_logprobs
    # The chosen token's own probability is reported even where no other is asked for.
    return max(1, wanted)


def _schema(form: models.ResponseFormat | None) -> str | None:
    """The JSON Schema that a response format stands for, as text."""
    match form:
        case models.JsonObjectFormat():
            return ANY_OBJECT if form.schema is None else json.dumps(form.schema)
        case models.JsonSchemaFormat():
            definition = form.json_schema
            return ANY_OBJECT if definition.schema is None else json.dumps(definition.schema)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Printer:
    request: models.ChatCompletionRequest
    ctx: Context
    wanted: GenerationRequest
    stamp: parts.Stamp

    def whole(self, ends: list[Finished]) -> models.ChatCompletion:
        answer = models.ChatCompletion(
            choices=[self._choice(index, end) for index, end in enumerate(ends)],
            created=self.stamp.created,
            model=self.stamp.model,
            system_fingerprint=parts.FINGERPRINT,
            usage=parts.usage(ends),
            id=self.stamp.id,
            timings=parts.timings(ends[0]),
        )
        if self.request.verbose:
            answer.field__verbose = self._verbose(0, ends[0])
        return answer

    def _choice(self, index: int, end: Finished) -> models.ChatChoice:
        choice = models.ChatChoice(
            finish_reason=parts.finish_reason(end),
            index=index,
            message=models.ChatAnswer(content=end.content),
        )
        if end.logprobs:
            choice.logprobs = self._logprobs(end.logprobs)
        return choice

    async def chunks(
        self, events: AsyncGenerator[tuple[int, Any], None]
    ) -> AsyncGenerator[models.ChatCompletionChunk, None]:
        opened: set[int] = set()
        ends: list[Finished] = []
        async with aclosing(events):
            async for index, event in events:
                if isinstance(event, Progress):
                    yield self._progress(event)
                    continue
                if index not in opened:
                    opened.add(index)
                    yield self._chunk(index, models.ChatDelta(role="assistant", content=None))
                if isinstance(event, Token):
                    if event.text or event.logprobs:
                        yield self._token(index, event)
                elif isinstance(event, Finished):
                    if event.text:
                        yield self._chunk(index, models.ChatDelta(content=event.text))
                    ends.append(event)
                    yield self._last(index, event)
        if self.request.stream_options and self.request.stream_options.include_usage:
            chunk = self._empty()
            chunk.usage = parts.usage(ends)
            yield chunk

    def _token(self, index: int, event: Token) -> models.ChatCompletionChunk:
        chunk = self._chunk(index, models.ChatDelta(content=event.text))
        if event.logprobs:
            chunk.choices[0].logprobs = self._logprobs(event.logprobs)
        return chunk

    def _last(self, index: int, end: Finished) -> models.ChatCompletionChunk:
        chunk = self._chunk(index, models.ChatDelta())
        chunk.choices[0].finish_reason = parts.finish_reason(end)
        chunk.timings = parts.timings(end)
        if self.request.verbose:
            chunk.field__verbose = self._verbose(index, end)
        return chunk

    def _progress(self, event: Progress) -> models.ChatCompletionChunk:
        chunk = self._empty()
        chunk.prompt_progress = models.PromptProgress(
            total=event.total, cache=event.cache, processed=event.processed, time_ms=event.time_ms
        )
        return chunk

    def _chunk(self, index: int, delta: models.ChatDelta) -> models.ChatCompletionChunk:
        chunk = self._empty()
        chunk.choices.append(models.ChatChunkChoice(finish_reason=None, index=index, delta=delta))
        return chunk

    def _empty(self) -> models.ChatCompletionChunk:
        return models.ChatCompletionChunk(
            choices=[],
            created=self.stamp.created,
            id=self.stamp.id,
            model=self.stamp.model,
            system_fingerprint=parts.FINGERPRINT,
        )

    def _logprobs(self, samples: tuple[Sample, ...]) -> models.ChatLogprobs:
        if self.request.top_logprobs == 0:
            samples = tuple(replace(sample, top=()) for sample in samples)
        linear = self.request.post_sampling_probs
        return models.ChatLogprobs(content=parts.probabilities(samples, self.ctx, linear=linear))

    def _verbose(self, index: int, end: Finished) -> models.Completion:
        request = self.request
        whole = render(request, self.ctx)
        request.add_generation_prompt, given = False, request.add_generation_prompt
        without = render(request, self.ctx)
        request.add_generation_prompt = given
        surface = SurfaceSettings(
            stream=request.stream,
            timings_per_token=request.timings_per_token,
            reasoning_format=request.reasoning_format or "deepseek",
            chat_format="peg-native",
            generation_prompt=whole.removeprefix(without),
        )
        return parts.verbose(index, end, self.wanted, self.ctx, surface)
