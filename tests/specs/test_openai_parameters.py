"""What OpenAI's own client can send is declared: honoured, without effect, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import completion_create_params as params
from recorded import documents

# The reference doesn't know it, so it is refused like any unknown field.
UNDECLARED = {"TextCompletionRequest": {"suffix"}}


def sent(schema: str) -> set[str]:
    """Names of the parameters of the client's method for a schema."""
    from openai.types import completion_create_params, embedding_create_params

    kinds: dict[str, Any] = {
        "ChatCompletionRequest": params.CompletionCreateParamsBase,
        "TextCompletionRequest": completion_create_params.CompletionCreateParamsBase,
        "EmbeddingsRequest": embedding_create_params.EmbeddingCreateParams,
    }
    return set(kinds[schema].__annotations__) | ({"stream"} if "Completion" in schema else set())


@pytest.mark.parametrize("schema", ["ChatCompletionRequest", "TextCompletionRequest", "EmbeddingsRequest"])
def test_parameters_are_declared(schema: str) -> None:
    properties = documents()["openai"]["components"]["schemas"][schema]["properties"]
    assert sent(schema) - set(properties) == UNDECLARED.get(schema, set())
    for name in sent(schema) & set(properties):
        node = properties[name]
        target = properties[node["x-alias-for"]] if "x-alias-for" in node else node
        assert "x-inert" in target or target.get("x-compat", {}).get("state"), f"{name} has no state"
