"""Chat messages, as the template takes them."""

from __future__ import annotations

from typing import Any

import msgspec

from mlxcel.engine.errors import InvalidRequestError, UnsupportedError

from ..context import Context


def render(request: Any, ctx: Context) -> str:
    """The prompt of a conversation.

    Args:
        request: a request model that includes the property set ``conversation`` of the specs.

    Raises:
        InvalidRequestError: the template refuses the conversation.
        UnsupportedError: a message carries an image or sound.
    """
    arguments = dict(request.chat_template_kwargs or {})
    if request.reasoning_effort is not None:
        arguments.setdefault("reasoning_effort", request.reasoning_effort)
    add_generation_prompt = arguments.pop("add_generation_prompt", request.add_generation_prompt)
    return ctx.engine.chat_template.render(
        [template_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)],
        add_generation_prompt=bool(add_generation_prompt),
        **arguments,
    )


def template_message(message: msgspec.Struct, path: str) -> dict[str, Any]:
    """One message as a template reads it: text parts on lines of their own, absent members left out."""
    values: dict[str, Any] = msgspec.to_builtins(message)
    role = values["role"]
    if role == "developer":
        # Templates know the role under its older name.
        values["role"] = "system"
    values["content"] = _text(values.get("content"), path)
    if values["content"] is None and role != "assistant":
        raise InvalidRequestError(
            f"Field '{path}.content': all messages but the assistant's must have it", path
        )
    return {name: value for name, value in values.items() if value is not None or name == "content"}


def _text(content: Any, path: str) -> str | None:
    if content is None or isinstance(content, str):
        return content
    for i, part in enumerate(content):
        if part["type"] not in ("text", "refusal"):
            kind = str(part["type"]).split("_")[0].removeprefix("input")
            raise UnsupportedError(
                f"Field '{path}.content[{i}]': {kind or 'media'} input is not supported; this build takes text only"
            )
    # The reference puts parts on lines of their own.
    return "\n".join(part.get("text", part.get("refusal", "")) for part in content)
