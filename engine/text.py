"""From token bytes to text that may be shown: whole characters, and nothing that may begin a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """What one token made showable.

    ``token`` completed ``text``, which is empty while text is held for a stop string. ``word`` is the stop
    string that ended the text, or None.
    """

    token: int
    text: str
    word: str | None = None


class TextAssembler:
    """The text of one sequence, fed token by token.

    Text is held back while its last character is unfinished and while its end may begin a stop string. Where
    several stop strings are complete the one that starts first wins, among equals the one listed first; it
    and all behind it are removed. Empty stop strings are ignored.

    Attributes:
        content: the whole text so far, up to the stop string, held text included.
        has_new_line: whether a line break has been shown.
        indent_ended: whether a line began with fewer than ``n_indent`` spaces and tabs, which ends the text
            before that line's first other character.
    """

    def __init__(self, stop: Sequence[str] = (), *, n_indent: int = 0) -> None:
        self.content = ""
        self.has_new_line = False
        self.indent_ended = False
        self._stop = tuple(word for word in stop if word)
        self._n_indent = n_indent
        self._line = 0
        self._n_shown = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int, piece: bytes, *, end: bool = False) -> Shown | None:
        """Add a token's bytes; ``end`` says that it ends the generation, so that no stop string can follow.

        Returns:
            What may be shown now, or None while a character is unfinished.
        """
        self.content += self._decoder.decode(piece)
        if self._decoder.getstate()[0]:
            return None
        held = self.content[self._n_shown :]
        word = self._cut_at_stop(held)
        if word is None and not end and self._may_stop(held):
            self._check_indent()
            return Shown(token, "")
        self._check_indent()
        text = self.content[self._n_shown :]
        self._n_shown += len(text)
        self.has_new_line |= "\n" in text
        return Shown(token, text, word)

    def finish(self) -> str:
        """The text still held, an unfinished character as U+FFFD."""
        self.content += self._decoder.decode(b"", final=True)
        held = self.content[self._n_shown :]
        self._n_shown += len(held)
        return held

    def _cut_at_stop(self, held: str) -> str | None:
        found = [(at, order) for order, word in enumerate(self._stop) if (at := held.find(word)) >= 0]
        if not found:
            return None
        at, order = min(found)
        self.content = self.content[: self._n_shown + at]
        return self._stop[order]

    def _may_stop(self, held: str) -> bool:
        """Whether ``held`` ends with the beginning of a stop string."""
        return any(
            held.endswith(word[:n]) for word in self._stop for n in range(1, min(len(word), len(held) + 1))
        )

    def _check_indent(self) -> None:
        """Look at one line's indentation a token, a line behind, as the reference does."""
        if self._n_indent <= 0 or not self.has_new_line:
            return
        if self._line:
            line = self.content[self._line :]
            body = line.lstrip(" \t")
            if body and len(line) - len(body) < self._n_indent:
                self.indent_ended = True
                self.content = self.content[: len(self.content) - len(body)]
        self._line = self.content.find("\n", self._line) + 1 or self._line
