"""GBNF, llama.cpp's grammar notation, rewritten as a Lark grammar for llguidance.

GBNF is a grammar over single characters: at any point every way to go on counts. A Lark lexer decides as it
goes, longest match first, and can lose ways. So every character of a literal and every class becomes a lexeme
of its own, which leaves the lexer nothing to decide; llguidance's own converter joins characters and changes
what some grammars accept.
"""

from __future__ import annotations

import json
import re

MAX_REPEAT = 2000
"""Above this, an upper bound means no bound and a lower one is refused, as the reference has it."""

MAX_DEPTH = 200

NAME = re.compile(r"[A-Za-z0-9-]+")
SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
REPEAT = re.compile(r"\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}")
TOKEN_ID = re.compile(r"<\[(\d+)\]>")
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([trn\\\"\[\]-]))")
PLAIN_ESCAPES = {"t": "\t", "r": "\r", "n": "\n"}


class GbnfError(ValueError):
    """The grammar isn't GBNF; the message says where and why."""


def to_lark(grammar: str) -> str:
    """The Lark equivalent of a GBNF ``grammar`` that has a rule named ``root``.

    Raises:
        GbnfError: the text can't be parsed, or names a rule that it doesn't define.
    """
    return _Parser(grammar).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._depth = 0
        self._numbers: dict[str, int] = {}
        self._rules: dict[str, str] = {}

    def parse(self) -> str:
        self._skip(lines=True)
        while self._pos < len(self._text):
            name = self._name()
            self._skip()
            self._expect("::=")
            self._skip(lines=True)
            self._rules[name] = self._alternatives(nested=False)
            if self._pos < len(self._text) and self._text[self._pos] not in "\r\n":
                raise self._error("expected the end of the line")
            self._skip(lines=True)
        missing = [name for name in ("root", *self._numbers) if name not in self._rules]
        if missing:
            raise GbnfError(f"rule '{missing[0]}' is not defined")
        lines = [f"{self._reference(name)}: {body}" for name, body in self._rules.items()]
        return "\n".join([f"start: {self._reference('root')}", *lines]) + "\n"

    def _error(self, message: str) -> GbnfError:
        line = self._text.count("\n", 0, self._pos) + 1
        rest = self._text[self._pos : self._pos + 20]
        return GbnfError(
            f"line {line}: {message} at {rest!r}" if rest else f"line {line}: {message} at the end"
        )

    def _skip(self, *, lines: bool = False) -> None:
        match = (SPACE_AND_LINES if lines else SPACE).match(self._text, self._pos)
        assert match is not None
        self._pos = match.end()

    def _peek(self) -> str:
        return self._text[self._pos : self._pos + 1]

    def _expect(self, what: str) -> None:
        if not self._text.startswith(what, self._pos):
            raise self._error(f"expected '{what}'")
        self._pos += len(what)

    def _name(self) -> str:
        match = NAME.match(self._text, self._pos)
        if match is None:
            raise self._error("expected a rule name")
        self._pos = match.end()
        return match.group()

    def _reference(self, name: str) -> str:
        return f"rule_{self._numbers.setdefault(name, len(self._numbers))}"

    def _alternatives(self, *, nested: bool) -> str:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error("too many nested groups")
        alternatives = [self._sequence(nested=nested)]
        while self._peek() == "|":
            self._pos += 1
            self._skip(lines=True)
            alternatives.append(self._sequence(nested=nested))
        self._depth -= 1
        return " | ".join(alternatives)

    def _sequence(self, *, nested: bool) -> str:
        items: list[str] = []
        while True:
            char = self._peek()
            if char and char in "*+?{":
                if not items:
                    raise self._error("expected something to repeat before it")
                items[-1] = self._repeated(items[-1])
            else:
                item = self._item(char)
                if item is None:
                    return " ".join(items) or '""'
                items.append(item)
            self._skip(lines=nested)

    def _item(self, char: str) -> str | None:
        if char == '"':
            return self._literal()
        if char == "[":
            return self._char_class()
        if char == "(":
            return self._group()
        if char == ".":
            self._pos += 1
            return r"/[\u{0}-\u{10FFFF}]/"
        if char and char in "<!":
            return self._token()
        if NAME.match(char):
            return self._reference(self._name())
        return None

    def _group(self) -> str:
        self._pos += 1
        self._skip(lines=True)
        inner = self._alternatives(nested=True)
        self._expect(")")
        return f"({inner})"

    def _repeated(self, item: str) -> str:
        char = self._peek()
        if char != "{":
            self._pos += 1
            return f"({item}){char}"
        match = REPEAT.match(self._text, self._pos)
        if match is None or (match[3] and not match[2]):
            raise self._error("expected '{m}', '{m,}' or '{m,n}'")
        least, most = int(match[1]), int(match[3]) if match[3] else None
        if least > MAX_REPEAT:
            raise self._error("too many repetitions")
        if not match[2]:
            most = least
        if most is not None and most < least:
            raise self._error("fewer repetitions at most than at least")
        self._pos = match.end()
        if most is not None and most > MAX_REPEAT:
            most = None
        if most == 0:
            return '""'
        return f"({item}){{{least},{'' if most is None else most}}}"

    def _literal(self) -> str:
        self._pos += 1
        chars: list[str] = []
        while self._peek() != '"':
            chars.append(json.dumps(chr(self._char()), ensure_ascii=False))
        self._pos += 1
        return f"({' '.join(chars)})" if chars else '""'

    def _char_class(self) -> str:
        self._pos += 1
        negated = self._peek() == "^"
        self._pos += negated
        parts: list[str] = []
        while self._peek() != "]":
            low = high = self._char()
            if self._peek() == "-" and self._text[self._pos + 1 : self._pos + 2] != "]":
                self._pos += 1
                high = self._char()
            if high < low:
                raise self._error("a range that ends before it begins")
            parts.append(f"\\u{{{low:X}}}-\\u{{{high:X}}}")
        self._pos += 1
        if not parts:
            raise self._error("expected a character in the class before")
        return f"/[{'^' * negated}{''.join(parts)}]/"

    def _char(self) -> int:
        """The next character, escapes resolved."""
        char = self._peek()
        if not char:
            raise self._error("expected a character")
        if char != "\\":
            self._pos += 1
            return ord(char)
        match = ESCAPE.match(self._text, self._pos)
        if match is None:
            raise self._error("unknown escape")
        code = (
            ord(PLAIN_ESCAPES.get(match[4], match[4]))
            if match[4]
            else int(match[1] or match[2] or match[3], 16)
        )
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self._error("not a character")
        self._pos = match.end()
        return code

    def _token(self) -> str:
        """A token by its ID, ``<[7]>``, or any but it, ``!<[7]>``."""
        negated = self._peek() == "!"
        match = TOKEN_ID.match(self._text, self._pos + negated)
        if match is None:
            raise self._error("expected a token such as '<[7]>'; tokens by their text are not supported,")
        self._pos = match.end()
        return f"<[{'^' * negated}{match[1]}]>"
