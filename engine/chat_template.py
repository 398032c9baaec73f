"""Chat templates: messages in, prompt text out, through the Jinja dialect that checkpoints are written in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NoReturn

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .chat_capabilities import probe
from .errors import InvalidRequestError, LoadError

CHATML = (
    "{%- for message in messages -%}\n"
    "  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "  {{- '<|im_start|>assistant\n' -}}\n"
    "{%- endif -%}"
)
"""The template of a checkpoint that has none, as the reference words it."""

Message = Mapping[str, Any]


class ChatTemplate:
    """A checkpoint's chat template.

    Attributes:
        source: the Jinja text.

    Args:
        source: Jinja text; None or empty for ChatML.
        bos_token: text of the token that begins a prompt.
        eos_token: text of the token that ends a turn.
        add_bos: whether the tokenizer puts ``bos_token`` first anyway; a prompt then doesn't begin with it.
        add_eos: the same for ``eos_token`` at the end.

    Raises:
        LoadError: the source isn't valid Jinja.
    """

    def __init__(
        self,
        source: str | None = None,
        *,
        bos_token: str = "",
        eos_token: str = "",
        add_bos: bool = False,
        add_eos: bool = False,
    ) -> None:
        self.source = source or CHATML
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._drop_prefix = bos_token if add_bos else ""
        self._drop_suffix = eos_token if add_eos else ""
        try:
            self._template = _environment().from_string(self.source)
        except jinja2.TemplateSyntaxError as error:
            raise LoadError(f"the chat template is not valid Jinja: line {error.lineno}: {error}") from error

    def render(
        self,
        messages: Sequence[Message],
        /,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **kwargs: Any,
    ) -> str:
        """The prompt for ``messages``.

        Args:
            messages: role, content and what else the template reads. Content that is a list of parts becomes
                text, and text a list, for a template that knows only the other form.
            tools: definitions to show to the model; None or empty leaves the variable undefined.
            add_generation_prompt: whether to end with the beginning of the assistant's answer.
            kwargs: more variables for the template; they win over its usual ones.

        Raises:
            InvalidRequestError: the template refuses these messages, or fails on them.
        """
        context: dict[str, Any] = {
            **self._tokens,
            "enable_thinking": True,
            "add_generation_prompt": add_generation_prompt,
            "messages": [self._in_known_form(message) for message in messages],
        }
        if tools:
            context["tools"] = list(tools)
        text = self._render({**context, **kwargs})
        return text.removeprefix(self._drop_prefix).removesuffix(self._drop_suffix)

    def _render(self, context: dict[str, Any]) -> str:
        try:
            return self._template.render(context)
        except jinja2.TemplateError as error:
            raise InvalidRequestError(f"the chat template refused: {error}", "messages") from error
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            # What a template does with values of a kind that it doesn't expect.
            message = f"the chat template failed on these messages: {error}"
            raise InvalidRequestError(message, "messages") from error

    def capabilities(self) -> dict[str, bool]:
        """What the template makes use of, under the names of ``/props``' ``chat_template_caps``."""
        return dict(self._capabilities)

    @cached_property
    def _capabilities(self) -> dict[str, bool]:
        return probe(self._template, self.source)

    def _in_known_form(self, message: Message) -> Message:
        content = message.get("content")
        if isinstance(content, list) and not self._capabilities["supports_typed_content"]:
            texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
            return {**message, "content": "\n".join(texts)}
        if isinstance(content, str) and not self._capabilities["supports_string_content"]:
            return {**message, "content": [{"type": "text", "text": content}]}
        return message


class _GenerationTag(jinja2.ext.Extension):
    """``{% generation %}``, by which training marks the assistant's words; it shows its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON; Jinja's own filter escapes HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
