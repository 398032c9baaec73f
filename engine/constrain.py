"""Text that must follow a grammar (GBNF) or a JSON Schema: which tokens may come next, by llguidance."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from .errors import GenerationError, InvalidRequestError
from .gbnf import GbnfError, to_lark
from .types import SamplingSettings
from .vocabulary import Vocabulary, pieces

SPECIAL_MARK = b"\xff"
"""What llguidance wants before the bytes of a special token; it can't be in UTF-8 text."""

ALL_TOKENS = '%llguidance {"no_forcing": true}\n'
"""Makes llguidance allow every token that fits, not just the usual tokens of a text that is certain."""

JSON_SPACE = r" |\n{1,2}[ \t]{0,20}"
"""Space between JSON tokens, as the reference allows it: not without end."""

PLACE = re.compile(r"^(at )?\d+\(\d+\): (failed to compile JSON schema: )?")
"""Where llguidance found an error in our Lark text, which the caller hasn't written."""

SUBSCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
SUBSCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SUBSCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")


class Constraint:
    """The state of one sequence in its grammar."""

    def __init__(self, matcher: LLMatcher, ends: frozenset[int]) -> None:
        self._matcher = matcher
        self._ends = ends
        self.is_finished = False
        """Whether the text is complete and has been ended."""

    def allows(self, token: int) -> bool:
        """Whether ``token`` may come next; an end-of-generation token may once the text is complete."""
        if token in self._ends:
            return self._matcher.is_accepting()
        return not self._matcher.is_stopped() and self._matcher.validate_tokens([token]) == 1

    def mask(self, logits: NDArray[np.float32]) -> None:
        """Set the logits (float32 ``[n_vocab]``) of tokens that may not come next to ``-inf``.

        Raises:
            GenerationError: the grammar has become too complex to follow.
        """
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        allowed = np.unpackbits(bits, bitorder="little")[: len(logits)]
        logits[: len(allowed)][allowed == 0] = -np.inf
        logits[len(allowed) :] = -np.inf

    def accept(self, token: int) -> None:
        """Go on with ``token``.

        Raises:
            GenerationError: ``token`` isn't allowed, or the grammar has become too complex to follow.
        """
        if token in self._ends:
            self.is_finished = True
            return
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise GenerationError(f"the grammar can't be followed any further: {self._matcher.get_error()}")


def constraint_for(settings: SamplingSettings, vocabulary: Vocabulary) -> Constraint | None:
    """The constraint that ``settings`` ask for. The first one for a vocabulary takes a second, later ones
    little.

    Raises:
        InvalidRequestError: the grammar or the schema is bad.
    """
    if settings.grammar:
        prototype = _grammar(vocabulary, settings.grammar)
    elif settings.json_schema is not None:
        prototype = _schema(vocabulary, settings.json_schema)
    else:
        return None
    return Constraint(prototype.deep_copy(), vocabulary.eog_ids)


@lru_cache(maxsize=32)
def _grammar(vocabulary: Vocabulary, grammar: str) -> LLMatcher:
    try:
        matcher = _matcher(vocabulary, to_lark(grammar))
    except (GbnfError, _BadGrammarError) as error:
        message = f"Failed to initialize samplers: failed to parse grammar: {error}"
        raise InvalidRequestError(message, "grammar") from error
    return matcher


@lru_cache(maxsize=32)
def _schema(vocabulary: Vocabulary, text: str) -> LLMatcher:
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict):
            raise _BadGrammarError(f"Unrecognized schema: {text}")
        schema = _closed(schema) if schema else {"type": "object"}
        schema["x-guidance"] = {"whitespace_pattern": JSON_SPACE}
        return _matcher(vocabulary, f"start: %json {json.dumps(schema)}\n")
    except (ValueError, RecursionError, _BadGrammarError) as error:
        message = f"Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n{error}"
        raise InvalidRequestError(message, "json_schema") from error


class _BadGrammarError(Exception):
    pass


def _matcher(vocabulary: Vocabulary, lark: str) -> LLMatcher:
    grammar = LLMatcher.grammar_from_lark(ALL_TOKENS + lark)
    matcher = LLMatcher(_tokenizer(vocabulary), grammar, log_level=0)
    if matcher.is_error():
        raise _BadGrammarError(PLACE.sub("", matcher.get_error().partition("\n")[0]))
    trial = matcher.deep_copy()
    begins = any(trial.compute_bitmask())
    if trial.is_error() or not begins:
        raise _BadGrammarError("no text satisfies it")
    return matcher


def _closed(schema: Any) -> Any:
    """``schema`` with objects that list their properties closed to others, as the reference reads it."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in SUBSCHEMAS:
        if key in closed:
            closed[key] = _closed(closed[key])
    for key in SUBSCHEMA_LISTS:
        if isinstance(closed.get(key), list):
            closed[key] = [_closed(item) for item in closed[key]]
    for key in SUBSCHEMA_MAPS:
        if isinstance(closed.get(key), dict):
            closed[key] = {name: _closed(item) for name, item in closed[key].items()}
    if "properties" in closed and "patternProperties" not in closed and "allOf" not in closed:
        closed.setdefault("additionalProperties", False)
    return closed


class _Bytes:
    """The vocabulary in the form that llguidance reads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.special_token_ids = [t for t in range(vocabulary.n_vocab) if vocabulary.is_special(t)]
        self.special_token_ids += sorted(vocabulary.eog_ids.difference(self.special_token_ids))
        tokens = list(pieces(vocabulary))
        for token in self.special_token_ids:
            tokens[token] = SPECIAL_MARK + tokens[token]
        self.tokens = tokens
        self.eos_token_id = min(vocabulary.eog_ids) if vocabulary.eos_id is None else vocabulary.eos_id
        self.bos_token_id = None

    def __call__(self, text: bytes | str) -> list[int]:
        string = text.decode(errors="replace") if isinstance(text, bytes) else text
        return self._vocabulary.encode(string, add_special=False, parse_special=False)


@lru_cache(maxsize=4)
def _tokenizer(vocabulary: Vocabulary) -> LLTokenizer:
    if not vocabulary.eog_ids:
        raise _BadGrammarError("the model has no token that ends a text")
    ends = sorted(vocabulary.eog_ids)
    return LLTokenizer(TokenizerWrapper(_Bytes(vocabulary)), vocabulary.n_vocab, ends)
