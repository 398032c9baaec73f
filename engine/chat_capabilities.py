"""What a chat template makes use of, found out by rendering values that know when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jinja2
import jinja2.meta

TEXT = "STRING_MARKER"
REASONING = "<REASONING_CONTENT_PLACEHOLDER>"
USER = {"role": "user", "content": "User message"}

TOOLS = [
    {
        "name": "tool",
        "type": "function",
        "function": {
            "name": "tool1",
            "description": "Tool description",
            "parameters": {
                "type": "object",
                "properties": {"arg": {"type": "string", "description": "Arg description"}},
                "required": ["arg"],
            },
        },
    }
]

PRESERVE_REASONING: dict[str, Any] = {
    "enable_thinking": True,
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
    "drop_thinking": False,
}


class _Text(str):
    """A string that notes when it is taken for a list of parts, and then fails as a string should."""

    used_as_list = False

    def __iter__(self) -> Iterator[str]:
        # A generator, so that asking whether it is iterable does no harm.
        self.used_as_list = True
        raise jinja2.TemplateError("text is not a list")
        yield

    def __getitem__(self, key: Any) -> str:
        self.used_as_list |= isinstance(key, int)
        return super().__getitem__(key)


class _Watched(dict[str, Any]):
    """A dict that notes which of its keys are read; showing it whole reads everything in it."""

    def __init__(self, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def items(self) -> Any:
        self.read.update(self)
        return super().items()

    def values(self) -> Any:
        self.read.update(self)
        return super().values()

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    __str__ = __repr__


def _watched(value: Any) -> Any:
    if isinstance(value, dict):
        return _Watched({key: _watched(item) for key, item in value.items()})
    if isinstance(value, list):
        return [_watched(item) for item in value]
    return value


class _Probe:
    """One rendering: its values, and the text that came of them (None if the template failed)."""

    def __init__(
        self,
        template: jinja2.Template,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **context: Any,
    ) -> None:
        self.messages = _watched(messages)
        self.tools = _watched(tools or [])
        self.text: str | None
        try:
            self.text = template.render(
                {
                    "messages": self.messages,
                    "tools": self.tools,
                    "bos_token": "",
                    "eos_token": "",
                    "add_generation_prompt": True,
                    **context,
                }
            )
        except Exception:
            # A template may fail in any way on what it doesn't expect; that is the finding.
            self.text = None


def probe(template: jinja2.Template, source: str) -> dict[str, bool]:
    """The capabilities of ``template``, whose text is ``source``, as the reference would report them."""
    string, typed = _content_forms(template)
    tools, calls, objects = _tools(template)
    return {
        "supports_object_arguments": objects,
        "supports_parallel_tool_calls": _parallel_calls(template, objects),
        "supports_preserve_reasoning": _preserves_reasoning(template),
        "supports_reasoning_effort": _names_reasoning_effort(template, source),
        "supports_string_content": string,
        "supports_system_role": _reads_system(template),
        "supports_tool_calls": calls,
        "supports_tools": tools,
        "supports_typed_content": typed,
    }


def _content_forms(template: jinja2.Template) -> tuple[bool, bool]:
    """Whether content may be a string, and whether it may be a list of parts."""
    content = _Text(TEXT)
    text = _Probe(template, [{"role": "user", "content": content}]).text
    as_string = text is not None and not (content.used_as_list and TEXT not in text)
    return as_string, content.used_as_list


def _reads_system(template: jinja2.Template) -> bool:
    messages = [{"role": "system", "content": "System message"}, USER]
    return "content" in _Probe(template, messages).messages[0].read


def _conversation(*arguments: Any) -> list[dict[str, Any]]:
    calls = [
        {"id": f"call0000{n}", "type": "function", "function": {"name": "tool1", "arguments": argument}}
        for n, argument in enumerate(arguments, 1)
    ]
    return [
        USER,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        USER,
    ]


def _tools(template: jinja2.Template) -> tuple[bool, bool, bool]:
    """Whether tools are described, calls shown, and call arguments read as objects."""
    run = _Probe(template, _conversation({"arg": "value"}), TOOLS)
    tools = calls = True
    if run.text is not None:
        tools, calls = _tools_read(run), _calls_read(run)
        if calls and "arg" in run.messages[1]["tool_calls"][0]["function"]["arguments"].read:
            return tools, calls, True
    run = _Probe(template, _conversation('{"arg": "value"}'), TOOLS)
    if run.text is None:
        return False, False, False
    return tools and _tools_read(run), calls and _calls_read(run), False


def _tools_read(run: _Probe) -> bool:
    return "function" in run.tools[0].read and "name" in run.tools[0]["function"].read


def _calls_read(run: _Probe) -> bool:
    return "tool_calls" in run.messages[1].read


def _parallel_calls(template: jinja2.Template, objects: bool) -> bool:
    argument: Any = {"arg": "value"} if objects else '{"arg": "value"}'
    run = _Probe(template, _conversation(argument, argument), TOOLS)
    if run.text is None or not _calls_read(run):
        return False
    return "function" in run.messages[1]["tool_calls"][1].read


def _preserves_reasoning(template: jinja2.Template) -> bool:
    def answer(reasoning: str) -> dict[str, Any]:
        return {"role": "assistant", "content": "Assistant message", "reasoning_content": reasoning}

    messages = [USER, answer(REASONING), USER, answer("Reasoning content"), USER]
    return REASONING in (_Probe(template, messages, **PRESERVE_REASONING).text or "")


def _names_reasoning_effort(template: jinja2.Template, source: str) -> bool:
    names = jinja2.meta.find_undeclared_variables(template.environment.parse(source))
    return not names.isdisjoint(("reasoning_effort", "reasoning_strength"))
