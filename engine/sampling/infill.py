"""The infill sampler: end when ending is likely, else prefer tokens that many candidates begin with."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..vocabulary import Vocabulary
from .candidates import Candidates, Floats

THRESHOLD = np.float32(0.2)


class Infill:
    """For code completion, after top-k and top-p have left few candidates.

    When end-of-generation tokens are likely enough, only they remain. Otherwise tokens that begin other
    candidates take over their probability (or give theirs up to a likelier one), and unlikely ones are
    dropped twice.
    """

    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def apply(self, candidates: Candidates) -> None:
        candidates.sort()
        probs = candidates.softmax()
        ends = np.isin(candidates.all_ids(), list(self._vocabulary.eog_ids))
        if 3.0 * probs[ends].sum() * len(candidates) > probs[~ends].sum():
            candidates.keep(np.flatnonzero(ends))
            return
        probs = self._merge(candidates, probs.copy())
        kept = np.flatnonzero(ends | (probs >= THRESHOLD))
        n_text = int(np.count_nonzero(~ends[kept]))
        if not n_text:
            self._end(candidates)
            return
        shares = probs[kept] / probs[kept].sum()
        candidates.keep(kept[ends[kept] | (shares >= np.float32(1.0 / (n_text + 1)))])

    def _merge(self, candidates: Candidates, probs: Floats) -> Floats:
        """Probabilities after each token and the tokens it begins are merged into the likeliest."""
        texts = [self._vocabulary.piece(int(token), special=False) for token in candidates.all_ids()]
        longer: dict[bytes, list[int]] = {text: [] for text in texts if text}
        for position, text in enumerate(texts):
            for n in range(1, len(text) + 1):
                if text[:n] in longer:
                    longer[text[:n]].append(position)
        gone = candidates.logits == -np.inf
        for first, text in enumerate(texts):
            for second in longer.get(text, ()):
                if gone[first]:
                    break
                if second == first or gone[second]:
                    continue
                into, out = (second, first) if probs[second] > probs[first] else (first, second)
                probs[into] += probs[out]
                probs[out] = 0.0
                gone[out] = True
        candidates.logits[gone] = -np.inf
        return probs

    def _end(self, candidates: Candidates) -> None:
        end = self._vocabulary.eos_id
        if end is None:
            candidates.keep(slice(0, 1))
            return
        candidates.ids = np.array([end])
        candidates.logits = np.ones(1, np.float32)
        candidates.probs = np.ones(1, np.float32)
