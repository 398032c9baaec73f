"""The command line: options from the generated table, their environment variables, help, and refusals."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from mlxcel.generated.options import OPTION_TABLE, Options
from mlxcel.generated.runtime import Option

logger = logging.getLogger(__name__)

TRUTHY = frozenset({"on", "enabled", "true", "1"})


class SettingsError(Exception):
    """A setting can't be used; its message is the one line that start-up ends with."""


@dataclass(frozen=True, slots=True)
class _Spelled:
    option: Option
    positive: bool


SPELLINGS: dict[str, _Spelled] = {
    spelling: _Spelled(option, positive)
    for option in OPTION_TABLE
    for spellings, positive in ((option.spellings, True), (option.negated, False))
    for spelling in spellings
}


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options in force: command line, then environment, then defaults.

    Raises:
        SettingsError: an option is unknown or refused, or a value doesn't fit.
    """
    given = _from_environment(environment) | _from_arguments(arguments)
    for name, value in given.items():
        option = next(o for o in OPTION_TABLE if o.name == name)
        if option.state == "refused" and value != option.default:
            raise SettingsError(f"{option.spellings[-1]}: {option.reason}")
        if option.state == "inert":
            logger.info("%s has no effect: %s", option.spellings[-1], option.reason)
    known = Options.__dataclass_fields__
    return Options(**{name: value for name, value in given.items() if name in known})


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for option in OPTION_TABLE:
        if option.env and option.env in environment:
            text = environment[option.env]
            value = text in TRUTHY if option.kind == "boolean" else _converted(option, text, option.env)
            given[option.name] = (value,) if option.repeatable else value
    return given


def _from_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    pending = list(arguments)
    while pending:
        word = pending.pop(0)
        name, equals, inline = word.partition("=")
        spelled = SPELLINGS.get(word) or (SPELLINGS.get(name) if equals else None)
        if spelled is None:
            raise SettingsError(_unknown(name))
        option = spelled.option
        if option.kind == "boolean":
            if equals and SPELLINGS.get(word) is None:
                raise SettingsError(f"{name}: takes no value")
            given[option.name] = spelled.positive
            continue
        if equals and SPELLINGS.get(word) is None:
            text = inline
        elif pending:
            text = pending.pop(0)
        else:
            raise SettingsError(f"{word}: a value is missing ({option.metavar or option.kind})")
        value = _converted(option, text, word)
        given[option.name] = (*given.get(option.name, ()), value) if option.repeatable else value
    return given


def _unknown(word: str) -> str:
    useful = [
        spelling for spelling, spelled in SPELLINGS.items() if spelled.option.state in ("supported", "ours")
    ]
    near = difflib.get_close_matches(word, useful, n=1, cutoff=0.6)
    near = near or difflib.get_close_matches(word, SPELLINGS, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else "; see mlxcel-serve --help"
    return f"unknown option {word}{hint}"


def _converted(option: Option, text: str, where: str) -> Any:
    value: Any = text
    if option.kind in ("integer", "number"):
        try:
            value = int(text) if option.kind == "integer" else float(text)
        except ValueError:
            article = "an integer" if option.kind == "integer" else "a number"
            raise SettingsError(f"{where} {text}: must be {article}") from None
    if option.choices and value not in option.choices:
        raise SettingsError(f"{where} {text}: must be one of {', '.join(map(str, option.choices))}")
    too_small = option.minimum is not None and value < option.minimum
    too_large = option.maximum is not None and value > option.maximum
    if too_small or too_large or value != value:
        low = "" if option.minimum is None else f"at least {option.minimum:g}"
        high = "" if option.maximum is None else f"at most {option.maximum:g}"
        raise SettingsError(f"{where} {text}: must be {' and '.join(filter(None, (low, high)))}")
    return value


def print_help(console: Console) -> None:
    """Print every option by group; what has no effect or is refused comes last, with the reason."""
    console.print("usage: mlxcel-serve [-m MODEL] [options]\n", markup=False, highlight=False)
    supported = [option for option in OPTION_TABLE if option.state in ("supported", "ours")]
    for group in dict.fromkeys(option.group for option in supported):
        _print_group(console, group, [option for option in supported if option.group == group])
    _print_group(console, "accepted, without effect", [o for o in OPTION_TABLE if o.state == "inert"])
    _print_group(console, "refused", [o for o in OPTION_TABLE if o.state == "refused"])


def _print_group(console: Console, title: str, options: Sequence[Option]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, title=title, title_justify="left")
    table.add_column(overflow="fold", min_width=30, max_width=44)
    table.add_column(overflow="fold")
    for option in options:
        spelled = ", ".join((*option.spellings, *option.negated))
        text = option.reason or option.help
        if option.default not in (None, "", ()) and option.kind != "boolean" and not option.reason:
            text += f" (default: {option.default})"
        if option.env:
            text += f" [{option.env}]"
        table.add_row(f"  {spelled} {option.metavar}".rstrip(), text)
    with console.capture() as capture:
        console.print(table, markup=False)
    console.print(capture.get(), markup=False, highlight=False, soft_wrap=True)
