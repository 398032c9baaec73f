"""Constraints: what grammars and schemas let through, and what is refused as none."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_support import Words, floats

from mlxcel.engine.constrain import Constraint, constraint_for
from mlxcel.engine.errors import GenerationError, InvalidRequestError
from mlxcel.engine.sampling import Sampler
from mlxcel.engine.types import SamplingSettings

WORDS = Words([bytes([i]) for i in range(256)] + [b"ma", b"may", b"maybe", b'{"', b""])
END = WORDS.eos_id


def constraint(**fields: Any) -> Constraint:
    made = constraint_for(SamplingSettings(**fields), WORDS)
    assert made is not None
    return made


def schema(value: Any) -> Constraint:
    return constraint(json_schema=json.dumps(value))


def outcome(under: Constraint, text: str) -> str:
    """``complete``, ``open`` (more must follow), or the part of ``text`` that was refused."""
    data = text.encode()
    for at, byte in enumerate(data):
        if not under.allows(byte):
            return "refused " + data[at:].decode(errors="replace")
        under.accept(byte)
    return "complete" if under.allows(END) else "open"


def allowed(under: Constraint) -> set[bytes]:
    logits = np.zeros(WORDS.n_vocab + 3, np.float32)
    under.mask(logits)
    assert not np.isfinite(logits[WORDS.n_vocab :]).any()
    tokens = np.flatnonzero(np.isfinite(logits)).tolist()
    assert tokens == [token for token in range(WORDS.n_vocab) if under.allows(token)]
    return {WORDS.words[token] for token in tokens}


def test_no_constraint_unless_asked() -> None:
    assert constraint_for(SamplingSettings(), WORDS) is None


def test_every_token_that_fits_is_allowed() -> None:
    assert allowed(constraint(grammar='root ::= "maybe"')) == {b"m", b"ma", b"may", b"maybe"}
    inside = schema({"const": "maybe"})
    inside.accept(ord('"'))
    assert allowed(inside) == {b"m", b"ma", b"may", b"maybe"}


def test_only_the_end_is_allowed_after_the_end() -> None:
    under = constraint(grammar='root ::= "a"')
    under.accept(ord("a"))
    assert allowed(under) == {b"<end>"}
    assert not under.is_finished
    under.accept(END)
    assert under.is_finished


def test_the_end_is_one_way_to_go_on_where_the_text_may_end() -> None:
    under = constraint(grammar='root ::= "a"+')
    assert allowed(under) == {b"a"}
    under.accept(ord("a"))
    assert allowed(under) == {b"a", b"<end>"}


def test_constraints_of_one_grammar_are_apart() -> None:
    first, second = (constraint(grammar='root ::= "ab"') for _ in range(2))
    first.accept(ord("a"))
    assert allowed(first) == {b"b"}
    assert allowed(second) == {b"a"}


def test_accepting_what_is_not_allowed_is_an_error() -> None:
    with pytest.raises(GenerationError):
        constraint(grammar='root ::= "a"').accept(ord("b"))


@pytest.mark.parametrize(
    ("grammar", "text", "expected"),
    [
        ('root ::= " yes" | " no"', " no", "complete"),
        ('root ::= " yes" | " no"', " maybe", "refused maybe"),
        ('root ::= ("- " [a-z]+ "\\n"){3}', "- a\n- b\n- c\n", "complete"),
        ('root ::= ("- " [a-z]+ "\\n"){3}', "- a\n- b\n", "open"),
        ('root ::= [a-z]+ "bc"', "aabcbbc", "complete"),
        ('root ::= word "b"\nword ::= [a-z]*', "abab", "complete"),
        ('root ::= ws "a" ws\nws ::= [ \\t]*', " a ", "complete"),
        ("root ::= .+", "a\né🎉", "complete"),
        ('root ::= [^"\\\\]*', 'ab\nxé"', 'refused "'),
        ('root ::= "日本" | [\\u65e5] "x"', "日x", "complete"),
        ('root ::= "\\x41\\U0001F389\\"\\\\"', 'A🎉"\\', "complete"),
        ("root ::= [\\]\\-a-c/^]+", "]-b/^", "complete"),
        ("root ::= [a-]+", "a-a", "complete"),
        ('root ::=\n  a-b |\n "q"\na-b ::= (\n"x"\n|"y" ) # "c"\n\n# end', "y", "complete"),
        ('root ::= "a"? "b"{2} "c"{1,} "d"{0,2} "e"{0}', "bbccdd", "complete"),
        ('root ::= "(" root ")" | ""', "((()))", "complete"),
        ('root ::= "(" root ")" | ""', "(()", "open"),
        ("root ::= <[258]> | !<[98]>", "a", "complete"),
        ("root ::= <[258]> | !<[98]>", "b", "refused b"),
    ],
)
def test_grammars(grammar: str, text: str, expected: str) -> None:
    assert outcome(constraint(grammar=grammar), text) == expected


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        ("root ::= [unclosed", "line 1: expected a character at the end"),
        ('foo ::= "x"', "rule 'root' is not defined"),
        ('root ::= "a"\nx ::= y', "rule 'y' is not defined"),
        ('root = "a"', "expected '::='"),
        ('root ::= "a" )', "expected the end of the line"),
        ('root ::= ("a"', "expected ')'"),
        ("root ::= *", "something to repeat"),
        ('root ::= "a"{3,1}', "fewer repetitions"),
        ('root ::= "a"{2001}', "too many repetitions"),
        ('root ::= "a"{x}', "expected '{m}'"),
        ('root ::= "\\q"', "unknown escape"),
        ('root ::= "\\U00110000"', "not a character"),
        ("root ::= [z-a]", "ends before it begins"),
        ("root ::= []", "expected a character in the class"),
        ("root ::= <think>", "tokens by their text"),
        ("root ::= " + "(" * 300, "nested"),
    ],
)
def test_bad_grammars(grammar: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        constraint(grammar=grammar)
    assert caught.value.field == "grammar"
    assert caught.value.message.startswith("Failed to initialize samplers: failed to parse grammar: ")
    assert words in caught.value.message


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (PERSON, '{\n    "name": "John",\n    "age": 30\n}', "complete"),
        (PERSON, '{"name":"a","age":1,"x":1}', 'refused ,"x":1}'),
        (PERSON, '{"name":"a"', "open"),
        (PERSON, '{  "name":"a"', 'refused  "name":"a"'),
        ({**PERSON, "additionalProperties": True}, '{"name":"a","age":1,"x":1}', "complete"),
        ({"type": "array", "items": PERSON}, '[{"name":"a","age":1,"x', 'refused ,"x'),
        ({"$ref": "#/$defs/p", "$defs": {"p": PERSON}}, '{"name":"a","age":1,"x', 'refused ,"x'),
        ({"enum": ["red", "green"]}, '"green"', "complete"),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
            "[-1, 2, 3]",
            "complete",
        ),
        ({"type": "string", "pattern": "^[0-9]{3}-[0-9]{4}$"}, '"100-1000"', "complete"),
        ({"type": "boolean"}, "maybe", "refused maybe"),
        ({}, '{"a":[1,null]}', "complete"),
        ({}, "[1]", "refused [1]"),
    ],
)
def test_schemas(value: Any, text: str, expected: str) -> None:
    assert outcome(schema(value), text) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"type": "nonsense"}, "Invalid type: nonsense"),
        ("str", 'Unrecognized schema: "str"'),
        (True, "Unrecognized schema: true"),
        ({"$ref": "#/nope"}, "'/nope' does not exist"),
        ({"type": "integer", "minimum": 5, "maximum": 1}, "Unsatisfiable"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    ],
)
def test_bad_schemas(value: Any, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        schema(value)
    assert caught.value.field == "json_schema"
    message = caught.value.message
    assert words in message
    assert "%llguidance" not in message
    assert message.startswith("Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n")


ATOMS = st.sampled_from([('"a"', "a"), ('"ab"', "ab"), ("[ab]", "[ab]"), ("[^a]", "[^a]"), ('""', "")])


def larger(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """Grammar expressions beside the regular expressions that mean the same."""

    def joined(parts: list[tuple[str, str]], grammar: str, regex: str) -> tuple[str, str]:
        return f"({grammar.join(p[0] for p in parts)})", f"(?:{regex.join(p[1] for p in parts)})"

    several = st.lists(inner, min_size=1, max_size=3)
    repeated = st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}"]))
    return (
        several.map(lambda parts: joined(parts, " ", ""))
        | several.map(lambda parts: joined(parts, " | ", "|"))
        | repeated.map(lambda pair: (f"({pair[0][0]}){pair[1]}", f"(?:{pair[0][1]}){pair[1]}"))
    )


@settings(max_examples=150)
@given(pair=st.recursive(ATOMS, larger, max_leaves=5), text=st.text("abc", max_size=5))
def test_a_grammar_means_what_the_regular_expression_means(pair: tuple[str, str], text: str) -> None:
    grammar, regex = pair
    result = outcome(constraint(grammar=f"root ::= {grammar}"), text)
    assert (result == "complete") == (re.fullmatch(regex, text, re.DOTALL) is not None)


def sampler(**fields: Any) -> Sampler:
    return Sampler(SamplingSettings(**{"seed": 3, "grammar": 'root ::= [abc] "d"', **fields}), LETTERS)


LETTERS = Words([b"a", b"b", b"c", b"d"])
LOGITS = floats(1.0, 2.0, 0.5, 4.0, 3.0)


def test_sampling_takes_the_best_that_is_allowed() -> None:
    greedy = sampler(temperature=0.0)
    assert not greedy.is_greedy
    tokens = []
    for _ in range(3):
        tokens.append(greedy.sample(LOGITS.copy()).token)
        greedy.accept(tokens[-1], generated=True)
    assert tokens == [1, 3, 4]


def test_sampling_follows_the_probabilities_of_what_is_allowed() -> None:
    warm = sampler(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    counts = np.bincount([warm.sample(LOGITS.copy()).token for _ in range(3000)], minlength=5) / 3000
    weights = np.exp(LOGITS[:3])
    assert np.abs(counts - [*(weights / weights.sum()), 0, 0]).max() < 0.03


def test_the_prompt_does_not_advance_the_grammar() -> None:
    greedy = sampler(temperature=0.0)
    greedy.accept(3, generated=False)
    assert greedy.sample(LOGITS.copy()).token == 1


def test_log_probabilities_are_the_models_without_the_grammar() -> None:
    sample = sampler(temperature=0.0, n_probs=2).sample(LOGITS.copy())
    total = math.log(np.exp(LOGITS.astype(np.float64)).sum())
    assert sample.token == 1
    assert sample.probability == pytest.approx(2.0 - total, abs=1e-5)
    assert [entry.token for entry in sample.top] == [3, 4]


def test_bad_grammars_are_found_when_the_sampler_is_made() -> None:
    with pytest.raises(InvalidRequestError):
        sampler(grammar="root ::=  [")
