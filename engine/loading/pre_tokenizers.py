"""How texts are cut into words before byte pairs are merged, by the name that GGUF files carry.

Each rule is a list of regular expressions, applied one after another: a match becomes a piece of its own, and
so does what lies between two matches. The rules are those that the vocabularies were trained with; the
reference cuts alike, but for words of mixed case with combining marks in ``tekken`` and ``gpt-4o``, which its
own expressions don't know.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER_LOWER = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)


def _words(numbers: str, *, before: str = CONTRACTION + "|", letters: str = r"\p{L}+") -> str:
    """The pattern that most vocabularies vary: contractions, words, numbers, punctuation, white space."""
    return before + r"[^\r\n\p{L}\p{N}]?" + letters + "|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
LLAMA3 = _words(r"\p{N}{1,3}")
QWEN2 = _words(r"\p{N}")
TEKKEN = "|".join((*UPPER_LOWER, r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*", SPACES))
GPT4O = "|".join(
    (
        *(case + CONTRACTION + "?" for case in UPPER_LOWER),
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*",
        SPACES,
    )
)
DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES,
)
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Regular expressions, and what a vocabulary's name says besides.

    ``whole_words`` looks a word up before its pairs are merged. ``add_bos`` is the default for files that are
    silent.
    """

    rules: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False


RULES: tuple[tuple[tuple[str, ...], PreTokenizer], ...] = (
    (
        ("default",),
        PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    ),
    (
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        PreTokenizer((LLAMA3,), whole_words=True, add_bos=True),
    ),
    (("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"), PreTokenizer((LLAMA3,))),
    (
        (
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
        ),
        PreTokenizer((GPT2,)),
    ),
    (
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
        PreTokenizer((r"\p{N}", GPT2)),
    ),
    (
        (
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ),
        PreTokenizer((QWEN2,)),
    ),
    (
        ("qwen35",),
        PreTokenizer(
            (
                CONTRACTION
                + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
                + SPACES,
            )
        ),
    ),
    (
        ("seed-coder",),
        PreTokenizer(
            (CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|" + SPACES,),
        ),
    ),
    (("minicpm5",), PreTokenizer((r"\p{N}{1,3}", _words(r"\p{N}+")), whole_words=True)),
    (("tekken",), PreTokenizer((TEKKEN,), whole_words=True, add_bos=True)),
    (("gpt-4o", "llama4", "kanana2", "minimax-m2"), PreTokenizer((GPT4O,))),
    (("deepseek-v3", "hunyuan-dense", "joyai-llm"), PreTokenizer(DEEPSEEK3)),
    (
        ("deepseek-coder",),
        PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}")),
    ),
    (
        ("falcon",),
        PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]")),
    ),
    (("bloom", "poro-chat", "gpt3-finnish"), PreTokenizer((BLOOM,))),
    (("viking",), PreTokenizer((BLOOM, r"\p{N}"))),
)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {name: rule for names, rule in RULES for name in names}
"""By ``tokenizer.ggml.pre``."""
