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
    texts = {text for text in END_OF_GENERATION if text in ids}
    # Where a message consists of parts, or of tool calls, the plain end mark doesn't end the generation.
    calls = texts & {"<|call|>", "<|calls|>"}
    if calls and texts & {"<|return|>", "<|flush|>"}:
        texts.discard("<|end|>")
    if "<|tool_response>" in texts:
        texts.discard("</s>")
    marks = (fim.pad, fim.repo, fim.separator)
    return frozenset(token for token in (*named, *(ids[text] for text in texts), *marks) if token is not None)


def hidden(
    ids: Mapping[str, int], control: Iterable[int], eog_ids: frozenset[int], fim: FimTokens
) -> frozenset[int]:
    """IDs whose text is hidden in generated output.

    Args:
        ids: the vocabulary.
        control: tokens that the checkpoint calls control tokens or unknown.
        eog_ids: tokens that end a generation; they are hidden though a checkpoint calls them plain.
        fim: likewise.
    """
    roles = (fim.prefix, fim.suffix, fim.middle, fim.pad, fim.repo, fim.separator)
    found = {*control, *eog_ids, *(token for token in roles if token is not None)}
    return frozenset(found - {ids[text] for text in ALWAYS_SHOWN if text in ids})
