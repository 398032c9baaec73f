"""Text as it may be shown: recorded streams, and properties that hold however tokens cut the bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcel.engine.text import Shown, TextAssembler

CAPTURES = Path(__file__).parents[1] / "reference" / "captures"

COUNTING = [" ", "5", ",", " ", "6", ",", " ", "7", ",", " ", "8", ",", " ", "9", ",", " ", "1", "0", ","]
"""How SmolLM2 goes on with "1, 2, 3, 4," in the recorded streams, token by token."""


def frames(name: str) -> list[dict[str, Any]]:
    cases = json.loads((CAPTURES / "stream.json").read_text())
    case = next(case for case in cases if case["request"]["name"] == name)
    return [json.loads(line[6:]) for line in case["answer"]["sse"] if line.startswith("data: {")]


@pytest.mark.parametrize(
    ("name", "stop"),
    [("stop-word", "9"), ("stop-multi-token", " 8, 9"), ("stop-partial-held-at-limit", "8, 9")],
)
def test_recorded_streams(name: str, stop: str) -> None:
    *partial, final = frames(name)
    text = TextAssembler([stop])
    shown = [text.feed(0, piece.encode()) for piece in COUNTING[: final["tokens_predicted"]]]
    assert [each and each.text for each in shown] == [frame["content"] for frame in partial]
    last = shown[-1]
    assert last is not None
    assert (last.word or "") == final["stopping_word"]


def test_recorded_characters_of_several_tokens() -> None:
    *partial, final = frames("unicode-split")
    characters = "".join(frame["content"] for frame in partial[1:])
    pieces = [b"["]
    for character in characters:
        encoded = character.encode()
        pieces += [encoded[:2], encoded[2:]]
    text = TextAssembler()
    shown = [(n, each) for n, piece in enumerate(pieces, 1) if (each := text.feed(n, piece)) is not None]
    assert [(n, each.text) for n, each in shown] == [(f["tokens_predicted"], f["content"]) for f in partial]
    # The recording ends inside a character, which the reference drops from streams.
    assert final["tokens_predicted"] == len(pieces) + 1
    assert text.feed(0, b"\xe3\x82") is None
    assert text.finish() == "\ufffd"
    assert text.content.endswith("\ufffd")


def test_the_event_carries_the_token_that_completed_it() -> None:
    text = TextAssembler()
    assert text.feed(5, "é".encode()[:1]) is None
    assert text.feed(6, "é".encode()[1:]) == Shown(6, "é")


def test_the_stop_that_starts_first_wins() -> None:
    text = TextAssembler(["cd", "bc"])
    shown = text.feed(0, b"abcd")
    assert shown is not None
    assert (shown.text, shown.word) == ("a", "bc")


def test_the_first_listed_wins_among_equals() -> None:
    for stop in (["b", "bc"], ["bc", "b"]):
        shown = TextAssembler(stop).feed(0, b"abc")
        assert shown is not None
        assert (shown.text, shown.word) == ("a", stop[0])


def test_empty_stops_are_ignored() -> None:
    assert TextAssembler(["", "z"]).feed(0, b"ab") == Shown(0, "ab")


def test_a_stop_inside_a_token_cuts_it() -> None:
    text = TextAssembler(["ump"])
    assert text.feed(0, b"jumps over") == Shown(0, "j", "ump")
    assert text.content == "j"
    assert text.finish() == ""


def test_the_whole_token_is_held_while_its_end_may_begin_a_stop() -> None:
    text = TextAssembler(["END"])
    assert text.feed(0, b"text E") == Shown(0, "")
    assert text.feed(1, b"N") == Shown(1, "")
    assert text.feed(2, b"C") == Shown(2, "text ENC")


def test_held_text_is_flushed() -> None:
    text = TextAssembler(["END"])
    assert text.feed(0, b"EN") == Shown(0, "")
    assert text.content == "EN"
    assert text.finish() == "EN"
    assert text.finish() == ""


def test_nothing_is_held_for_a_stop_at_the_end() -> None:
    text = TextAssembler(["END"])
    text.feed(0, b"EN")
    assert text.feed(1, b"", end=True) == Shown(1, "EN")


def test_line_breaks_count_once_shown() -> None:
    text = TextAssembler(["\n\n"])
    text.feed(0, b"\n")
    assert not text.has_new_line
    text.feed(1, b"a")
    assert text.has_new_line


def test_bad_bytes_become_replacement_characters() -> None:
    text = TextAssembler()
    assert text.feed(0, b"a\xffb") == Shown(0, "a\ufffdb")


def indented(pieces: list[str], n_indent: int) -> tuple[str, str, int]:
    """What is shown, what the text is, and after how many tokens it ends."""
    text = TextAssembler(n_indent=n_indent)
    shown = ""
    for n, piece in enumerate(pieces, 1):
        each = text.feed(0, piece.encode())
        shown += each.text if each else ""
        if text.indent_ended:
            return shown, text.content, n
    return shown, text.content, len(pieces)


BODY = [
    "#",
    "  ",
    " x",
    " =",
    " x",
    ".",
    "replace",
    '("',
    "x",
    '",',
    ' "',
    'x")',
    "\n",
    "   ",
    " return",
    " x",
]


def test_recorded_indentation() -> None:
    # tests/reference: n-indent-4 ends at the eighteenth token, an empty line.
    expected = '#   x = x.replace("x", "x")\n    return x\n'
    assert indented([*BODY, "\n", "\n", "#"], 4) == (expected, expected, 18)


@pytest.mark.parametrize(
    ("n_indent", "pieces", "content"),
    [
        (0, ["a", "\n", "b", "c"], "a\nbc"),
        (4, ["a", "\n", "    ", "b", "c"], "a\n    bc"),
        (4, ["a", "\n", "  ", "b", "c"], "a\n  "),
        (2, ["a", "\n", "\t\t", "b", "c"], "a\n\t\tbc"),
        (4, ["a", "\n", "  "], "a\n  "),
    ],
)
def test_indentation(n_indent: int, pieces: list[str], content: str) -> None:
    assert indented(pieces, n_indent)[1] == content


ALPHABET = "ab\né日🎉"


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A text and its bytes, cut anywhere."""
    text = draw(st.text(ALPHABET, max_size=30))
    data = text.encode()
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=len(data))))
    return text, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


STOPS = st.text(ALPHABET, max_size=4)


@given(cut=cut_texts(), stop=STOPS)
def test_one_stop_cuts_the_same_however_the_bytes_are_cut(cut: tuple[str, list[bytes]], stop: str) -> None:
    whole, pieces = cut
    assembler = TextAssembler([stop])
    shown, word = "", None
    for piece in pieces:
        each = assembler.feed(0, piece)
        if each is not None:
            shown += each.text
            word = each.word
        if word is not None:
            break
    shown += assembler.finish()
    assert shown == assembler.content == (whole.partition(stop)[0] if stop else whole)
    assert word == (stop if stop and stop in whole else None)


@given(cut=cut_texts(), stops=st.lists(STOPS, max_size=4))
def test_many_stops_end_the_text_with_the_first_complete_one(
    cut: tuple[str, list[bytes]], stops: list[str]
) -> None:
    _, pieces = cut
    assembler = TextAssembler(stops)
    shown, fed = "", b""
    for piece in pieces:
        fed += piece
        each = assembler.feed(0, piece)
        shown += each.text if each else ""
        try:
            so_far = fed.decode()
        except UnicodeDecodeError:
            assert each is None
            continue
        assert each is not None
        found = {stop: so_far.index(stop) for stop in stops if stop and stop in so_far}
        if found:
            at = min(found.values())
            assert each.word == next(stop for stop in stops if found.get(stop) == at)
            assert shown == assembler.content == so_far[:at]
            return
        assert each.word is None
        assert so_far.startswith(shown)
        held = so_far[len(shown) :]
        may_begin = any(so_far.endswith(stop[:n]) for stop in stops for n in range(1, len(stop)))
        assert bool(held) <= may_begin
    assert shown + assembler.finish() == assembler.content == fed.decode()


@given(st.lists(st.binary(max_size=4), max_size=12))
def test_any_bytes_make_the_text_that_decoding_them_makes(pieces: list[bytes]) -> None:
    assembler = TextAssembler()
    shown = "".join(each.text for piece in pieces if (each := assembler.feed(0, piece)))
    assert shown + assembler.finish() == b"".join(pieces).decode(errors="replace")
