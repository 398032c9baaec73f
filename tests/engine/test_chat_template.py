"""Prompts out of messages, and what templates are found to make use of."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mlxcel.engine.chat_template import CHATML, ChatTemplate
from mlxcel.engine.errors import InvalidRequestError, LoadError

CAPTURES = Path(__file__).parents[1] / "reference" / "captures"
HELLO = [{"role": "user", "content": "Hi"}]


def recorded(name: str) -> dict[str, Any]:
    cases = json.loads((CAPTURES / "utility.json").read_text())
    case: dict[str, Any] = next(case for case in cases if case["request"]["name"] == name)
    return case


def smollm2_template() -> ChatTemplate:
    props = recorded("props")["answer"]["json"]
    return ChatTemplate(props["chat_template"], bos_token=props["bos_token"], eos_token=props["eos_token"])


def test_recorded_prompt() -> None:
    case = recorded("apply-template-system")
    prompt = smollm2_template().render(case["request"]["body"]["messages"])
    assert prompt == case["answer"]["json"]["prompt"]


def test_recorded_capabilities() -> None:
    assert smollm2_template().capabilities() == recorded("props")["answer"]["json"]["chat_template_caps"]


def test_chatml_is_the_default() -> None:
    template = ChatTemplate(None)
    assert template.source == ChatTemplate("").source == CHATML
    assert template.render(HELLO) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(HELLO, add_generation_prompt=False) == "<|im_start|>user\nHi<|im_end|>\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% if true %}\n  a\n  {% endif %}\nb", "  a\nb"),
        ("{{ {'q': '<é&\"'} | tojson }}", '{"q": "<é&\\""}'),
        ("{{ [1, {'a': 2}] | tojson(indent=1) }}", '[\n 1,\n {\n  "a": 2\n }\n]'),
        ("{% for i in [0, 1, 2] %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02"),
        ("{% for i in [0, 1, 2] %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}", "0"),
        ("a{% generation %}{{ messages[0].content }}{% endgeneration %}z", "aHiz"),
        ("{{ bos_token }}|{{ eos_token }}", "<s>|</s>"),
        ("{{ tools is defined }} {{ enable_thinking }} {{ add_generation_prompt }}", "False True True"),
        ("{{ strftime_now('%Y') }}", str(datetime.now().year)),
        ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
    ],
)  # fmt: skip
def test_dialect(source: str, expected: str) -> None:
    assert ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(HELLO) == expected


def test_variables_win_over_the_usual_ones() -> None:
    template = ChatTemplate("{{ enable_thinking }} {{ self_made }} {{ self }}")
    assert template.render(HELLO, enable_thinking=False, self_made=3, self=4).startswith("False 3 ")


def test_tools_reach_the_template() -> None:
    template = ChatTemplate("{% for tool in tools %}{{ tool.function.name }};{% endfor %}")
    assert template.render(HELLO, tools=[{"function": {"name": "f"}}]) == "f;"
    assert template.render(HELLO, tools=[]) == template.render(HELLO) == ""


def test_tokens_that_the_tokenizer_adds_are_left_to_it() -> None:
    source = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    tokens: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>"}
    assert ChatTemplate(source, **tokens).render(HELLO) == "<s>Hi</s>"
    assert ChatTemplate(source, **tokens, add_bos=True).render(HELLO) == "Hi</s>"
    assert ChatTemplate(source, **tokens, add_eos=True).render(HELLO) == "<s>Hi"


PARTS = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
TYPED = "{% for m in messages %}{% for part in m.content %}[{{ part.text }}]{% endfor %}{% endfor %}"


def test_parts_become_text_for_a_template_of_texts() -> None:
    assert ChatTemplate("{{ messages[0].content }}").render(PARTS) == "a\nb"


def test_text_becomes_a_part_for_a_template_of_parts() -> None:
    assert ChatTemplate(TYPED).render(HELLO) == "[Hi]"
    assert ChatTemplate(TYPED).render(PARTS) == "[a][b]"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('roles must alternate') }}", "refused: roles must alternate"),
        ("{{ messages[7].content.x }}", "refused"),
        ("{{ messages[0].content + 3 }}", "failed"),
        ("{{ 1 / 0 }}", "failed"),
        ("{{ messages.append(1) }}", "refused"),
        ("{{ ''.__class__.__mro__ }}", "refused"),
    ],
)
def test_failures_are_the_requests(source: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ChatTemplate(source).render(HELLO)
    assert caught.value.field == "messages"
    assert words in caught.value.message


def test_bad_jinja_is_a_bad_checkpoint() -> None:
    with pytest.raises(LoadError, match=r"not valid Jinja: line 2"):
        ChatTemplate("a\n{% if %}")


ALL = {
    "supports_string_content": True,
    "supports_typed_content": False,
    "supports_system_role": False,
    "supports_tools": False,
    "supports_tool_calls": False,
    "supports_parallel_tool_calls": False,
    "supports_object_arguments": False,
    "supports_preserve_reasoning": False,
    "supports_reasoning_effort": False,
}


@pytest.mark.parametrize(
    ("source", "capabilities"),
    [
        ("{{ messages[-1].content }}", {}),
        ("{{ messages[0]['content'] }}", {"supports_system_role": True}),
        ("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}", {}),
        (
            TYPED,
            {"supports_string_content": False, "supports_typed_content": True, "supports_system_role": True},
        ),
        ("{{ tools | tojson }}", {"supports_tools": True}),
        ("{% for t in tools %}{{ t.function.name }}{% endfor %}", {"supports_tools": True}),
        ("{% if tools %}tools{% endif %}", {}),
        (
            "{% for m in messages if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% endfor %}",
            {"supports_tool_calls": True},
        ),
        (
            "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}"
            "{% endfor %}{% endfor %}",
            {
                "supports_tool_calls": True,
                "supports_parallel_tool_calls": True,
                "supports_object_arguments": True,
            },
        ),
        (
            "{% for m in messages %}{% for c in m.tool_calls %}{{ '{' + c.function.arguments }}{% endfor %}"
            "{% endfor %}",
            {"supports_tool_calls": True, "supports_parallel_tool_calls": True},
        ),
        (
            "{% for m in messages %}{{ m.reasoning_content }}{% endfor %}",
            {"supports_preserve_reasoning": True},
        ),
        (
            "{% for m in messages if not clear_thinking %}{{ m.reasoning_content }}{% endfor %}",
            {"supports_preserve_reasoning": True},
        ),
        ("{{ messages[messages | length - 2].reasoning_content }}", {}),
        ("effort {{ reasoning_effort }}", {"supports_reasoning_effort": True}),
    ],
)
def test_capabilities(source: str, capabilities: dict[str, bool]) -> None:
    assert ChatTemplate(source).capabilities() == {**ALL, **capabilities}
