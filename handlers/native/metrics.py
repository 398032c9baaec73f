"""``/metrics``: the engine's counters under the reference's names."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mlxcel.engine.types import EngineCounters
from mlxcel.generated.native import routes

from ..context import Context


@routes.metrics_read
async def read(ctx: Context) -> str:
    """The exposition format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counters(ctx.engine.counters()))
    return generate_latest(registry).decode()


class _Counters(Collector):
    def __init__(self, counters: EngineCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        c = self._counters
        totals = (
            ("prompt_tokens", "Number of prompt tokens processed, cached ones left out", c.prompt_tokens),
            ("prompt_tokens_cached", "Number of prompt tokens reused from the cache", c.prompt_tokens_cached),
            ("prompt_seconds", "Time spent on prompts", c.prompt_seconds),
            ("tokens_predicted", "Number of generated tokens", c.predicted_tokens),
            ("tokens_predicted_seconds", "Time spent on generation", c.predicted_seconds),
            ("n_decode", "Number of decode steps", c.decode_calls),
            ("spec_decode_num_draft_tokens", "Speculation: tokens drafted", 0),
            ("spec_decode_num_accepted_tokens", "Speculation: drafted tokens accepted", 0),
            ("spec_decode_num_drafts", "Speculation: verification steps", 0),
            ("requests_cancelled", "Number of requests whose client went away", c.cancelled),
        )
        for name, text, value in totals:
            family = CounterMetricFamily(f"llamacpp:{name}", text)
            family.add_metric([], value)
            yield family
        gauges = (
            ("n_tokens_max", "Longest sequence so far, prompt and generation", c.longest_sequence),
            ("prompt_tokens_seconds", "Prompt tokens per second", _rate(c.prompt_tokens, c.prompt_seconds)),
            (
                "predicted_tokens_seconds",
                "Generated tokens per second",
                _rate(c.predicted_tokens, c.predicted_seconds),
            ),
            ("requests_processing", "Number of requests in a slot", c.requests_processing),
            ("requests_deferred", "Number of requests that wait for a slot", c.requests_deferred),
            ("n_busy_slots_per_decode", "Busy slots per decode step", _rate(c.busy_slots, c.decode_calls)),
        )
        for name, text, value in gauges:
            gauge = GaugeMetricFamily(f"llamacpp:{name}", text)
            gauge.add_metric([], value)
            yield gauge


def _rate(amount: float, over: float) -> float:
    return amount / over if over else 0.0
