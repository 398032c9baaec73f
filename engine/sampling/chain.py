"""The sampler chain of one sequence: logits in, a token out."""

from __future__ import annotations

import numpy as np

from ..constrain import Constraint, constraint_for
from ..errors import GenerationError, InvalidRequestError
from ..types import Sample, SamplingSettings
from ..vocabulary import Vocabulary
from .adaptive import AdaptiveP
from .bias import logit_bias
from .candidates import Candidates, Floats
from .distribution import Distribution
from .mirostat import Mirostat1, Mirostat2
from .registry import ADAPTIVE_P, build_stages
from .report import after_sampling, before_sampling
from .rng import resolve_seed
from .stage import Remembers, Selector, Stage
from .temperature import Temperature


class Sampler:
    """Chooses the tokens of one sequence.

    Bias comes first, then the stages that ``settings.samplers`` names, then the selector; mirostat replaces
    the stages by temperature alone. A constraint is tried on the chosen token: only if it forbids the token
    are the logits masked and the chain run again, as the reference does it.

    Attributes:
        seed: the seed in use, never the one that asks for a random seed.

    Raises:
        InvalidRequestError: the settings can't be used.
    """

    def __init__(
        self, settings: SamplingSettings, tokenizer: Vocabulary, constraint: Constraint | None = None
    ) -> None:
        self.seed = resolve_seed(settings.seed)
        self._n_probs = settings.n_probs
        self._after_sampling = settings.post_sampling_probs
        self._constraint = constraint or constraint_for(settings, tokenizer)
        self._stages, self._selector = _chain(settings, tokenizer, self.seed)
        self._memories = [part for part in (*self._stages, self._selector) if isinstance(part, Remembers)]
        self._changes_logits = bool(self._memories or settings.logit_bias or self._constraint)
        self._is_argmax = not self._memories and _is_argmax(self._stages)

    @property
    def is_greedy(self) -> bool:
        """Whether the argmax of the raw logits is the answer, with no probabilities to report."""
        return self._is_argmax and self._constraint is None and self._n_probs == 0

    def accept(self, token: int, *, generated: bool) -> None:
        """Remember a token of the sequence; only ``generated`` ones advance the constraint."""
        if generated and self._constraint is not None:
            self._constraint.accept(token)
        for memory in self._memories:
            memory.accept(token)

    def sample(self, logits: Floats) -> Sample:
        """Choose the next token.

        Args:
            logits: float32 ``[n_vocab]``; may be changed.

        Raises:
            InvalidRequestError: biases and penalties leave no token to choose.
            GenerationError: the model's logits leave none.
        """
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._sample(logits)
        except GenerationError as error:
            if self._changes_logits:
                raise InvalidRequestError(
                    "no token can be chosen: logit_bias, penalties or temperature rule all out; make them smaller"
                ) from error
            raise

    def _sample(self, logits: Floats) -> Sample:
        if self.is_greedy:
            return Sample(int(logits.argmax()))
        wants_raw = self._constraint is not None or (self._n_probs > 0 and not self._after_sampling)
        raw = logits.copy() if wants_raw else logits
        candidates, position = self._run(logits)
        if self._constraint is not None and not self._constraint.allows(candidates.id(position)):
            masked = raw.copy()
            self._constraint.mask(masked)
            candidates, position = self._run(masked)
        if self._n_probs <= 0:
            return Sample(candidates.id(position))
        if self._after_sampling:
            return after_sampling(position, candidates, self._n_probs)
        return before_sampling(candidates.id(position), raw, self._n_probs)

    def _run(self, logits: Floats) -> tuple[Candidates, int]:
        candidates = Candidates(logits)
        if self._is_argmax:
            candidates.keep(np.array([candidates.best()]))
            candidates.is_sorted = True
        else:
            for stage in self._stages:
                stage.apply(candidates)
        return candidates, self._selector.select(candidates)


def _chain(settings: SamplingSettings, vocabulary: Vocabulary, seed: int) -> tuple[list[Stage], Selector]:
    bias = logit_bias(settings, vocabulary)
    stages: list[Stage] = [] if bias is None else [bias]
    if settings.mirostat:
        stages.append(Temperature(settings.temperature))
        if settings.mirostat == 1:
            return stages, Mirostat1(settings.mirostat_tau, settings.mirostat_eta, seed, vocabulary.n_vocab)
        return stages, Mirostat2(settings.mirostat_tau, settings.mirostat_eta, seed)
    stages += build_stages(settings, vocabulary, seed)
    if ADAPTIVE_P in settings.samplers:
        return stages, AdaptiveP(settings.adaptive_target, settings.adaptive_decay, seed)
    return stages, Distribution(seed)


def _is_argmax(stages: list[Stage]) -> bool:
    """Whether the best candidate comes through every stage until one takes it."""
    for stage in stages:
        if not stage.keeps_best:
            return False
        if stage.takes_best:
            return True
    return False
