"""The engine as its callers see it: slots, queue, caches, cancellation, failures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mlxcel.engine.engine import Engine, EngineOptions
from mlxcel.engine.errors import (
    ContextExceededError,
    EngineError,
    GenerationError,
    InvalidRequestError,
    UnavailableError,
)
from mlxcel.engine.loading import LoadedModel
from mlxcel.engine.types import (
    EmbeddingRequest,
    Event,
    Finished,
    GenerationRequest,
    Progress,
    SamplingSettings,
    Token,
)

PROMPT = tuple(range(20, 40))


@asynccontextmanager
async def running(model: LoadedModel, **options: Any) -> AsyncIterator[Engine]:
    engine = Engine(model, EngineOptions(**options))
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


def request(prompt: tuple[int, ...] = PROMPT, n: int = 4, **changed: Any) -> GenerationRequest:
    sampling = SamplingSettings(temperature=0.0, ignore_eos=True, logit_bias=())
    return GenerationRequest(**{"prompt": prompt, "n_predict": n, "sampling": sampling, **changed})


async def events(engine: Engine, wanted: GenerationRequest) -> list[Event]:
    return [event async for event in engine.generate(wanted)]


async def end(engine: Engine, wanted: GenerationRequest) -> Finished:
    last = (await events(engine, wanted))[-1]
    assert isinstance(last, Finished)
    return last


def test_events_come_in_order(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1) as engine:
            seen = await events(engine, request(return_progress=True))
            assert [type(event) for event in seen] == [Progress, Progress, *[Token] * 4, Finished]
            assert [event.n_decoded for event in seen if isinstance(event, Token)] == [1, 2, 3, 4]

    asyncio.run(scenario())


def test_a_slot_keeps_its_prefix(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=2) as engine:
            first = await end(engine, request())
            again = await end(engine, request())
            longer = await end(engine, request((*PROMPT, 7, 8)))
            without = await end(engine, request(cache_prompt=False))
            assert (first.timings.cache_n, again.timings.cache_n) == (0, len(PROMPT) - 1)
            assert longer.timings.cache_n == len(PROMPT)
            assert without.timings.cache_n == 0
            assert first.tokens == again.tokens == without.tokens
            assert first.id_slot == again.id_slot == longer.id_slot

    asyncio.run(scenario())


def test_a_foreign_prompt_takes_the_slot_that_was_idle_longest(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=3) as engine:
            used = [(await end(engine, request((50 + i, 60 + i)))).id_slot for i in range(6)]
            assert used == [0, 1, 2, 0, 1, 2]

    asyncio.run(scenario())


def test_more_requests_than_slots_wait_in_order(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1) as engine:
            order: list[int] = []

            async def one(number: int) -> None:
                await end(engine, request((number + 1, number + 2, number + 3)))
                order.append(number)

            await asyncio.gather(*(one(number) for number in range(6)))
            assert order == list(range(6))

    asyncio.run(scenario())


def test_closing_an_iterator_frees_the_slot(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1) as engine:
            stream = engine.generate(request(n=900))
            await anext(stream)
            assert engine.slots()[0].is_processing
            await stream.aclose()
            assert (await asyncio.wait_for(end(engine, request()), 10)).n_decoded == 4
            assert engine.counters().cancelled == 1

    asyncio.run(scenario())


def test_copies_share_the_prompt_and_each_can_be_closed(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=4) as engine:
            before = engine.counters().prompt_tokens
            copies = await engine.generate_copies(request(n=30), 3)
            await copies[1].aclose()
            kept = [[event async for event in copies[i]][-1] for i in (0, 2)]
            assert engine.counters().prompt_tokens == before + len(PROMPT)
            assert all(isinstance(one, Finished) and one.n_decoded == 30 for one in kept)

    asyncio.run(scenario())


def test_more_copies_than_slots_are_all_generated(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=2) as engine:
            copies = await engine.generate_copies(request(), 5)
            lasts = [[event async for event in copy][-1] for copy in copies]
            assert len({last.tokens for last in lasts if isinstance(last, Finished)}) == 1

    asyncio.run(scenario())


def test_the_context_ends_a_sequence(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1, n_ctx=64) as engine:
            last = await end(engine, request(n=-1))
            assert (last.truncated, last.stop_type) == (True, "limit")
            assert len(PROMPT) + last.n_decoded == 64
            with pytest.raises(ContextExceededError) as caught:
                engine.generate(request(tuple([1] * 64)))
            assert (caught.value.n_prompt_tokens, caught.value.n_ctx) == (64, 64)

    asyncio.run(scenario())


def test_a_shifted_context_goes_on(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1, n_ctx=64, context_shift=True) as engine:
            last = await end(engine, request(n=200, n_keep=4))
            assert (last.n_decoded, last.truncated) == (200, True)
            assert last.n_cached < 64

    asyncio.run(scenario())


def test_slots_that_share_a_full_context_end_the_newest_sequence(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_ctx=100) as engine:
            older = asyncio.ensure_future(end(engine, request(n=60)))
            await asyncio.sleep(0)
            newer = asyncio.ensure_future(end(engine, request((3, 4, 5, 6), n=90)))
            with pytest.raises(GenerationError, match="Context size has been exceeded"):
                await newer
            assert (await older).n_decoded == 60

    asyncio.run(scenario())


def test_idle_slots_give_up_their_cache_first(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_ctx=100) as engine:
            for start in (0, 30, 60):
                await end(engine, request(tuple(range(start + 1, start + 29))))
            assert (await end(engine, request(tuple([9] * 80)))).n_decoded == 4

    asyncio.run(scenario())


def test_what_cant_be_asked_is_refused_before_it_starts(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1) as engine:
            with pytest.raises(InvalidRequestError):
                engine.generate(request((0, 10**6)))
            with pytest.raises(InvalidRequestError):
                await engine.embed(EmbeddingRequest(inputs=((),)))
            bad = request(sampling=SamplingSettings(grammar="root ::= ["))
            with pytest.raises(InvalidRequestError) as caught:
                await end(engine, bad)
            assert caught.value.field == "grammar"

    asyncio.run(scenario())


def test_a_sequence_that_fails_takes_no_other_with_it(
    tiny_model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=2) as engine:
            [broken] = await engine.generate_copies(request(n=50), 1)
            sequence = broken._sequence
            assert sequence is not None

            def fail(_: object) -> None:
                raise RuntimeError("a sampler fails")

            other = asyncio.ensure_future(end(engine, request((5, 6, 7), n=50)))
            await anext(broken)
            monkeypatch.setattr(sequence.sampler, "sample", fail)
            with pytest.raises(EngineError, match="a sampler fails"):
                async for _ in broken:
                    pass
            assert (await other).n_decoded == 50
            assert (await end(engine, request())).n_decoded == 4

    asyncio.run(scenario())


def test_embeddings_come_between_the_steps_of_a_running_stream(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        async with running(tiny_model, n_parallel=1) as engine:
            stream = engine.generate(request(n=200))
            await anext(stream)
            texts = tuple((i + 1, i + 2) for i in range(5))
            answers = await engine.embed(EmbeddingRequest(inputs=texts, pooling="mean"))
            assert [answer.index for answer in answers] == list(range(5))
            assert engine.slots()[0].is_processing
            await stream.aclose()

    asyncio.run(scenario())


def test_a_stopped_engine_says_so(tiny_model: LoadedModel) -> None:
    async def scenario() -> None:
        engine = Engine(tiny_model, EngineOptions(n_parallel=1))
        engine.start()
        stream = engine.generate(request(n=900))
        await anext(stream)
        engine.stop()
        with pytest.raises(UnavailableError):
            async for _ in stream:
                pass
        with pytest.raises(UnavailableError):
            await end(engine, request())

    asyncio.run(scenario())


GENERATE_AND_END = """
import asyncio, sys
from mlxcel.engine.engine import Engine, EngineOptions
from mlxcel.engine.loading import load
from mlxcel.engine.types import GenerationRequest

async def main():
    engine = Engine(load(sys.argv[1]), EngineOptions(n_parallel=1))
    engine.start()
    async for event in engine.generate(GenerationRequest(prompt=(1, 2, 3), n_predict=5)):
        pass
    engine.stop()

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_that_has_generated_ends_normally(tiny_model_dir: Path) -> None:
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", GENERATE_AND_END, str(tiny_model_dir)], capture_output=True, timeout=60
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
