"""What follows from the spelling of tokens, whatever kind of file they come from; the reference's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..tokenizer import FimTokens

END_OF_GENERATION = frozenset(
    {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<｜end▁of▁sentence｜>",
        "[e~[",
    }
)
"""Texts of tokens that end a generation, besides the IDs that the checkpoint names."""

FIM_SPELLINGS: dict[str, tuple[str, ...]] = {
    "prefix": (
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<｜fim▁begin｜>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<|prefix|>",
    ),
    "suffix": (
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<｜fim▁hole｜>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<|suffix|>",
    ),
    "middle": (
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<｜fim▁end｜>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<|middle|>",
    ),
    "pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "repo": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "separator": ("<|file_sep|>",),
}
"""Texts of fill-in-the-middle tokens by role, keys as in :class:`FimTokens`."""

ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
"""Control tokens that belong to an answer's text."""


def fim_tokens(ids: Mapping[str, int], named: Mapping[str, int | None]) -> FimTokens:
    """The FIM tokens: those that the file names (keyed like :class:`FimTokens`), else those spelled so."""
    found: dict[str, int | None] = {}
    for role, spellings in FIM_SPELLINGS.items():
        spelled = next((ids[s] for s in spellings if s in ids), None)
        told = named.get(role)
        found[role] = told if told is not None else spelled
    return FimTokens(**found)


def end_of_generation(ids: Mapping[str, int], named: Iterable[int | None], fim: FimTokens) -> frozenset[int]:
    """IDs that end a generation: named ones, spelled ones, and marks of a padding, repository or file."""
    marks = (fim.pad, fim.repo, fim.separator)
    spelled = (ids[text] for text in _ending(ids))
    return frozenset(token for token in (*named, *spelled, *marks) if token is not None)


def _ending(ids: Mapping[str, int]) -> set[str]:
    texts = {text for text in END_OF_GENERATION if text in ids}
    # Where a message has parts, or calls tools, the plain end mark doesn't end the generation.
    if texts & {"<|call|>", "<|calls|>"} and texts & {"<|return|>", "<|flush|>"}:
        texts.discard("<|end|>")
    if "<|tool_response>" in texts:
        texts.discard("</s>")
    return texts


def special_tokens(ids: Mapping[str, int], control: Iterable[int], fim: FimTokens) -> frozenset[int]:
    """IDs whose text is hidden in generated output, and recognised in a prompt only when asked.

    Args:
        ids: the vocabulary.
        control: tokens that the checkpoint calls control tokens or unknown; ones spelled so count too.
        fim: the FIM tokens.
    """
    roles = (fim.prefix, fim.suffix, fim.middle, fim.pad, fim.repo, fim.separator)
    spelled = {ids[text] for spellings in FIM_SPELLINGS.values() for text in spellings if text in ids}
    marks = {token for token in roles if token is not None and token in spelled}
    found = {*control, *(ids[text] for text in _ending(ids)), *marks}
    return frozenset(found - {ids[text] for text in ALWAYS_SHOWN if text in ids})
