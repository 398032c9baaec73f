"""What goes into the engine and what comes out: plain values, resolved by the caller, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

StopType = Literal["none", "eos", "limit", "word"]
Pooling = Literal["none", "mean", "cls", "last", "rank"]

DEFAULT_SAMPLERS: tuple[str, ...] = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)

RANDOM_SEED = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """The sampler chain of one sequence, every value resolved; names and meanings are llama-server's.

    ``seed`` is in [0, 2**32); ``RANDOM_SEED`` asks for a random one. ``samplers`` holds canonical names in
    chain order. ``logit_bias`` pairs a token ID with a bias in logits (``-inf`` bans). ``n_probs`` is how many
    candidates to report per token; they are logarithms over the raw logits unless ``post_sampling_probs``.
    ``grammar`` is GBNF or empty and ``json_schema`` JSON text or None; at most one of the two is set.
    """

    seed: int = RANDOM_SEED
    temperature: float = 0.8
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    typical_p: float = 1.0
    repeat_last_n: int = 64
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    adaptive_target: float = -1.0
    adaptive_decay: float = 0.9
    ignore_eos: bool = False
    logit_bias: tuple[tuple[int, float], ...] = ()
    n_probs: int = 0
    min_keep: int = 0
    post_sampling_probs: bool = False
    samplers: tuple[str, ...] = DEFAULT_SAMPLERS
    grammar: str = ""
    json_schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One sequence to generate.

    ``prompt`` holds token IDs, special tokens included. ``n_predict`` is -1 for "until the context is full"; 0
    evaluates the prompt and gives one token. ``n_keep`` and ``n_discard`` matter only where the engine shifts a
    full context. ``n_indent`` (columns) and ``t_max_predict_ms`` (milliseconds, off at 0 or below) are the
    reference's limits on code completion. ``id_slot`` is -1 for any slot. ``special`` shows the text of special
    tokens. ``return_progress`` asks for :class:`Progress` events while the prompt is evaluated.
    """

    prompt: tuple[int, ...]
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    n_predict: int = -1
    n_keep: int = 0
    n_discard: int = 0
    n_indent: int = 0
    t_max_predict_ms: int = -1
    stop: tuple[str, ...] = ()
    cache_prompt: bool = True
    n_cache_reuse: int = 0
    id_slot: int = -1
    special: bool = False
    return_progress: bool = False


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token with its probability: a natural logarithm, or linear after sampling (``post_sampling_probs``)."""

    token: int
    value: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What the sampler chain made of one row of logits.

    ``probability`` and ``top`` are present only when ``n_probs`` asked for them; ``top`` is sorted, best first.
    """

    token: int
    probability: float = 0.0
    top: tuple[TokenProbability, ...] = ()


@dataclass(frozen=True, slots=True)
class Timings:
    """Counts and durations of a sequence so far; milliseconds.

    ``cache_n`` prompt tokens came from a cache and ``prompt_n`` were evaluated. ``predicted_ms`` starts at the
    first token, so rates divide by ``predicted_n - 1``.
    """

    cache_n: int
    prompt_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of prompt evaluation: ``processed`` of ``total`` tokens (cached ones count), in ``time_ms``."""

    total: int
    cache: int
    processed: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Token:
    """One step's news about a sequence.

    ``text`` may be shown now: it is whole UTF-8 and can't be the start of a stop string. ``tokens`` are the IDs
    whose text became complete with this event (usually one). ``n_decoded`` counts tokens generated so far.
    ``stopped`` is true when a stop string was completed by this token.
    """

    text: str
    tokens: tuple[int, ...]
    n_decoded: int
    timings: Timings
    logprobs: tuple[Sample, ...] = ()
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a sequence and its totals.

    ``text`` is what was still held back. ``content`` and ``tokens`` are the whole answer as the reference counts
    it: text up to the stop string, IDs of every generated token, the end-of-generation one included.
    ``n_prompt`` counts the prompt's tokens, ``n_decoded`` the generated ones, ``n_cached`` the slot's occupancy.
    ``truncated`` says that the context limit ended or shifted the sequence.
    """

    text: str
    content: str
    tokens: tuple[int, ...]
    logprobs: tuple[Sample, ...]
    stop_type: StopType
    stopping_word: str
    has_new_line: bool
    truncated: bool
    n_prompt: int
    n_decoded: int
    n_cached: int
    id_slot: int
    timings: Timings


Event = Progress | Token | Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts to embed, as token IDs. ``normalize``: -1 none, 0 max-abs int16, 1 taxicab, 2 Euclidean, p > 2 p-norm."""

    inputs: tuple[tuple[int, ...], ...]
    pooling: Pooling | None = None
    normalize: int = 2


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of one input: one vector when pooled, one per token otherwise."""

    index: int
    vectors: tuple[tuple[float, ...], ...]
    n_tokens: int


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot as ``GET /slots`` shows it. ``settings`` is None while the slot has never worked."""

    id: int
    n_ctx: int
    is_processing: bool
    id_task: int = -1
    n_prompt_tokens: int = 0
    n_prompt_tokens_processed: int = 0
    n_prompt_tokens_cache: int = 0
    n_decoded: int = 0
    n_remain: int = -1
    has_next_token: bool = False
    has_new_line: bool = False
    request: GenerationRequest | None = None


@dataclass(slots=True)
class EngineCounters:
    """Monotonic totals since start-up, and the two ``requests_`` gauges; seconds and tokens.

    ``busy_slots`` sums the decoding slots over all ``decode_calls``.
    """

    prompt_tokens: int = 0
    prompt_tokens_cached: int = 0
    prompt_seconds: float = 0.0
    predicted_tokens: int = 0
    predicted_seconds: float = 0.0
    decode_calls: int = 0
    busy_slots: int = 0
    longest_sequence: int = 0
    cancelled: int = 0
    requests_processing: int = 0
    requests_deferred: int = 0


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about the loaded checkpoint. ``size`` is in bytes on disk, ``n_params`` counts scalars."""

    name: str
    path: str
    architecture: str
    file_type: str
    vocab_type: int
    n_vocab: int
    n_ctx_train: int
    n_embd: int
    n_params: int
    size: int
    pooling: Pooling | None = None
    extra: dict[str, str] = field(default_factory=dict)
