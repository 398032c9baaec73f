"""Facts about tokens that follow from their spelling, whatever kind of file they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..tokenizer import FimTokens

# Texts that the reference takes for the end of a generation, besides the IDs that the checkpoint names.
END_OF_GENERATION = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
)

FIM_SPELLINGS: dict[str, tuple[str, ...]] = {
    "prefix": (
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<｜fim▁begin｜>",
    ),
    "suffix": (
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<｜fim▁hole｜>",
    ),
    "middle": (
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<｜fim▁end｜>",
    ),
    "pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>"),
    "repo": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "separator": ("<|file_sep|>",),
}


def fim_tokens(ids: Mapping[str, int], named: Mapping[str, int | None]) -> FimTokens:
    """The FIM tokens: those that the file names (keys as in :class:`FimTokens`), else those known by spelling."""
    found: dict[str, int | None] = {}
    for role, spellings in FIM_SPELLINGS.items():
        spelled = next((ids[s] for s in spellings if s in ids), None)
        told = named.get(role)
        found[role] = told if told is not None else spelled
    return FimTokens(**found)


def end_of_generation(ids: Mapping[str, int], named: Iterable[int | None], fim: FimTokens) -> frozenset[int]:
    """IDs that end a generation. A repository or file mark ends it too, as in the reference."""
    spelled = (ids.get(text) for text in END_OF_GENERATION)
    marks = (fim.pad, fim.repo, fim.separator)
    return frozenset(token for token in (*named, *spelled, *marks) if token is not None)
