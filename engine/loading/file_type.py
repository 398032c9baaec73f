"""The name of a GGUF file's quantization, in the reference's words."""

from __future__ import annotations

from collections import Counter

import gguf

from .gguf_file import GgufFile

SIZES = {"S": "Small", "M": "Medium", "L": "Large"}
BITS_PER_WEIGHT = {
    "TQ1_0": "1.69 bpw ternary",
    "TQ2_0": "2.06 bpw ternary",
    "IQ1_S": "1.5625 bpw",
    "IQ1_M": "1.75 bpw",
    "IQ2_XXS": "2.0625 bpw",
    "IQ2_XS": "2.3125 bpw",
    "IQ2_S": "2.5 bpw",
    "IQ2_M": "2.7 bpw",
    "IQ3_XXS": "3.0625 bpw",
    "IQ3_XS": "3.3 bpw",
    "IQ3_S": "3.4375 bpw",
    "IQ3_M": "3.66 bpw",
    "IQ4_NL": "4.5 bpw",
    "IQ4_XS": "4.25 bpw",
}
"""Quantizations that the reference names together with their size."""


def file_type(file: GgufFile) -> str:
    """The file's quantization, such as ``Q4_K - Medium`` or ``all F32``; guessed when it doesn't say."""
    number = file.get("general.file_type")
    if number is None:
        kinds = Counter(tensor.kind.name for tensor in file.tensors.values())
        commonest = max(kinds, key=lambda kind: kinds[kind])
        return "(guessed) " + _text("ALL_F32" if commonest == "F32" else commonest)
    try:
        return _text(gguf.LlamaFileType(number).name)
    except ValueError:
        return "unknown, may not work"


def _text(name: str) -> str:
    if name == "ALL_F32":
        return "all F32"
    name = name.removeprefix("MOSTLY_")
    if name in BITS_PER_WEIGHT:
        return f"{name} - {BITS_PER_WEIGHT[name]}"
    family, _, size = name.rpartition("_")
    return f"{family} - {SIZES[size]}" if family.endswith("_K") and size in SIZES else name
