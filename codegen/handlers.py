"""Compares handlers with operations, without importing them: functions decorated with ``@routes.<name>``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from codegen.document import Problem, nearest
from codegen.operations import OperationSpec

Function = ast.AsyncFunctionDef | ast.FunctionDef


def check_handlers(operations: dict[str, list[OperationSpec]], root: Path) -> list[Problem]:
    """Operations without a handler, handlers without an operation, signatures that differ from the protocol.

    ``operations`` are those of each surface; ``root`` is the checkout with handlers/<surface>/*.py. Parameter
    names and annotations are compared as text (``models.`` may be left out); return types are left to the
    type checker.
    """
    problems: list[Problem] = []
    for surface, specs in operations.items():
        expected = {spec.name: spec for spec in specs if not spec.is_alias}
        found: dict[str, str] = {}
        for path in sorted((root / "handlers" / surface).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            try:
                decorated = list(_decorated(path))
            except SyntaxError as error:
                problems.append(Problem(file, f"line {error.lineno}", error.msg, "Correct the Python"))
                continue
            for name, function in decorated:
                where = f"{function.name} (line {function.lineno})"
                if name not in expected:
                    problem = (
                        f"is a handler without an operation: no '{surface}' operation is called '{name}'"
                    )
                    problems.append(Problem(file, where, problem, nearest(name, expected)))
                    continue
                spec = expected[name]
                if name in found:
                    problem = f"is the second handler of {spec.operation_id}, after {found[name]}"
                    problems.append(Problem(file, where, problem, "Remove one of the two"))
                found[name] = f"{file}:{function.lineno}"
                if (file, function.name) != (spec.handler_file, spec.function):
                    problem = f"isn't where {spec.operation_id} looks for it"
                    problems.append(
                        Problem(file, where, problem, f"Move it to {spec.handler_file}:{spec.function}")
                    )
                problems += [Problem(file, where, *fault) for fault in _signature(function, spec)]
        for name, spec in expected.items():
            if name not in found:
                problems.append(
                    Problem(
                        f"specs/{surface}.yaml",
                        f"paths.{spec.path}.{spec.method.lower()}",
                        f"the operation {spec.operation_id} has no handler",
                        f"Write {spec.handler_file}:{spec.function} and decorate it with @routes.{name}",
                    )
                )
    return sorted(set(problems))


def _decorated(path: Path) -> Iterator[tuple[str, Function]]:
    """(decorator name, function) of every function decorated with an attribute of ``routes``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, Function):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Attribute) and ast.unparse(decorator.value) == "routes":
                    yield decorator.attr, node


def _signature(function: Function, spec: OperationSpec) -> Iterator[tuple[str, str]]:
    """(problem, remedy) for each way in which a handler differs from its protocol."""
    if isinstance(function, ast.FunctionDef):
        yield "isn't a coroutine", "Write async def"
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    names = (["request"] if spec.request else []) + ["ctx"]
    if [argument.arg for argument in positional] != names or arguments.vararg:
        written = ", ".join(argument.arg for argument in positional)
        yield f"takes ({written}), the protocol ({', '.join(names)})", f"See {spec.protocol} in routes.py"
    elif spec.request and not _same(positional[0].annotation, spec.request):
        yield _annotated("request", positional[0].annotation, spec.request)
    keywords = {argument.arg: argument for argument in arguments.kwonlyargs}
    expected = {parameter.argument: parameter for parameter in spec.parameters}
    if keywords.keys() != expected.keys() or arguments.kwarg:
        listed = ", ".join(keywords) or "none"
        wanted = ", ".join(parameter.signature for parameter in spec.parameters) or "none"
        yield f"has the keyword parameters {listed}", f"The protocol has {wanted}"
    for name in keywords.keys() & expected.keys():
        if not _same(keywords[name].annotation, expected[name].annotation):
            yield _annotated(name, keywords[name].annotation, expected[name].annotation)


def _same(node: ast.expr | None, expected: str) -> bool:
    if node is None:
        return False
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return str(text).replace("models.", "").replace(" ", "") == expected.replace("models.", "").replace(
        " ", ""
    )


def _annotated(name: str, node: ast.expr | None, expected: str) -> tuple[str, str]:
    written = f"as {ast.unparse(node)}" if node else "with no type"
    return f"annotates '{name}' {written}", f"The spec says {expected}"
