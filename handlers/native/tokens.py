"""``/tokenize`` and ``/detokenize``."""

from __future__ import annotations

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.tokenizer import Tokenizer
from mlxcel.generated.native import models, routes

from ..common.prompts import tokenize_mixed
from ..context import Context


@routes.tokens_tokenize
async def tokenize(request: models.TokenizeRequest, ctx: Context) -> models.TokenizeResponse:
    """Token IDs of a text, or of texts and IDs mixed."""
    content = request.content or []
    parts = [content] if isinstance(content, str) else content
    tokens = await tokenize_mixed(
        ctx.engine, parts, add_special=request.add_special, parse_special=request.parse_special
    )
    _check(tokens, ctx.engine.tokenizer, "content")
    if not request.with_pieces:
        return models.TokenizeResponse(tokens=list(tokens))
    return models.TokenizeResponse(tokens=[_piece(token, ctx.engine.tokenizer) for token in tokens])


@routes.tokens_detokenize
async def detokenize(request: models.DetokenizeRequest, ctx: Context) -> models.DetokenizeResponse:
    """The text of token IDs, special ones spelled out."""
    tokens = tuple(request.tokens or ())
    _check(tokens, ctx.engine.tokenizer, "tokens")
    return models.DetokenizeResponse(content=ctx.engine.tokenizer.decode(tokens))


def _check(tokens: tuple[int, ...], tokenizer: Tokenizer, field: str) -> None:
    worst = max(tokens, default=0)
    if worst >= tokenizer.n_vocab:
        raise InvalidRequestError(
            f"Field '{field}': {worst} is not a token ID (the vocabulary has {tokenizer.n_vocab})", field
        )


def _piece(token: int, tokenizer: Tokenizer) -> models.TokenPiece:
    raw = tokenizer.piece(token, special=True)
    try:
        return models.TokenPiece(id=token, piece=raw.decode())
    except UnicodeDecodeError:
        return models.TokenPiece(id=token, piece=list(raw))
