"""Handlers against operations: what is missing, extra, misplaced or differently typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.bundle import bundle
from codegen.document import load_specs
from codegen.handlers import check_handlers
from codegen.operations import OperationSpec, read_operations

HERE = Path(__file__).parent

COMPLETION = """
from mlxcel.generated.native import models, routes

@routes.completion_create
async def create(request: models.CompletionRequest, ctx: Context) -> models.Completion: ...
"""
EMBEDDING = """
@routes.embedding_create
async def create(request: EmbeddingRequest, ctx: Context) -> list[list[float]]: ...
"""
SLOTS = """
@routes.slots_act
async def act(ctx: Context, *, id_slot: int, action: str = "save", class_: str | None = None) -> str: ...
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "handlers" / "native"
    folder.mkdir(parents=True)
    for name, text in {"completion": COMPLETION, "embedding": EMBEDDING, "slots": SLOTS}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def operations() -> dict[str, list[OperationSpec]]:
    return {"native": read_operations("native", bundle(load_specs(HERE / "specs"), "native"))}


def problems(operations: dict[str, list[OperationSpec]], checkout: Path) -> list[str]:
    return [str(problem) for problem in check_handlers(operations, checkout)]


def edit(checkout: Path, file: str, old: str, new: str) -> None:
    path = checkout / "handlers" / "native" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_matching_handlers_pass(operations: dict[str, list[OperationSpec]], checkout: Path) -> None:
    assert problems(operations, checkout) == []


def test_operation_without_a_handler(operations: dict[str, list[OperationSpec]], checkout: Path) -> None:
    (checkout / "handlers/native/slots.py").unlink()
    assert problems(operations, checkout) == [
        (
            "specs/native.yaml: paths./slots/{id_slot}.post: the operation native.slots.act has no handler. "
            "Write handlers/native/slots.py:act and decorate it with @routes.slots_act"
        )
    ]


def test_handler_without_an_operation(operations: dict[str, list[OperationSpec]], checkout: Path) -> None:
    path = checkout / "handlers/native/slots.py"
    path.write_text(SLOTS + SLOTS.replace("slots_act", "slots_art").replace("def act", "def art"), "utf-8")
    assert problems(operations, checkout) == [
        (
            "handlers/native/slots.py: art (line 6): is a handler without an operation: "
            "no 'native' operation is called 'slots_art'. Did you mean 'slots_act'?"
        )
    ]


CHANGES = {
    "not a coroutine": ("completion.py", "async def", "def", "isn't a coroutine. Write async def"),
    "request type": (
        *("completion.py", "models.CompletionRequest", "models.EmbeddingRequest"),
        "annotates 'request' as models.EmbeddingRequest. The spec says models.CompletionRequest",
    ),
    "parameter names": (
        *("completion.py", "request:", "body:"),
        "takes (body, ctx), the protocol (request, ctx). See CompletionCreate in routes.py",
    ),
    "keyword type": (
        *("slots.py", "id_slot: int", "id_slot: str"),
        "annotates 'id_slot' as str. The spec says int",
    ),
    "keyword without a type": (
        *("slots.py", "id_slot: int", "id_slot"),
        "annotates 'id_slot' with no type. The spec says int",
    ),
    "missing keyword": (
        *("slots.py", 'action: str = "save", ', ""),
        (
            "has the keyword parameters id_slot, class_. "
            "The protocol has id_slot: int, action: str = 'save', class_: str | None = None"
        ),
    ),
    "place": (
        *("embedding.py", "def create", "def embed"),
        "isn't where native.embedding.create looks for it. Move it to handlers/native/embedding.py:create",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_signature(operations: dict[str, list[OperationSpec]], checkout: Path, change: str) -> None:
    file, old, new, expected = CHANGES[change]
    edit(checkout, file, old, new)
    (line,) = problems(operations, checkout)
    assert line.startswith(f"handlers/native/{file}: ")
    assert line.endswith(f": {expected}")


def test_second_handler(operations: dict[str, list[OperationSpec]], checkout: Path) -> None:
    (checkout / "handlers/native/slots.py").write_text(SLOTS + SLOTS, "utf-8")
    assert problems(operations, checkout) == [
        (
            "handlers/native/slots.py: act (line 6): is the second handler of native.slots.act, "
            "after handlers/native/slots.py:3. Remove one of the two"
        )
    ]


def test_broken_python(operations: dict[str, list[OperationSpec]], checkout: Path) -> None:
    (checkout / "handlers/native/zz.py").write_text("def f(:\n", "utf-8")
    (line,) = problems(operations, checkout)
    assert line.startswith("handlers/native/zz.py: line 1: ")
    assert line.endswith(". Correct the Python")
