"""bundle -> check -> models -> routes -> options: specs in, the text of every generated file out."""

from __future__ import annotations

import json
from pathlib import Path

from codegen.bundle import bundle
from codegen.check import check_bundles, check_specs
from codegen.document import Json, Problem, SpecError, Specs, load_specs
from codegen.fields import fields
from codegen.handlers import check_handlers
from codegen.models import models
from codegen.operations import read_operations
from codegen.options import OptionSpecs, options, read_options
from codegen.output import MARK
from codegen.render import header, render
from codegen.routes import dispatch, routes
from codegen.shape import check_shape


def compile_specs(folder: Path, handlers: Path | None) -> dict[str, str]:
    """The generated tree of a specs folder: text by path relative to generated/.

    ``handlers`` is the checkout whose handlers are compared with the operations, None to leave that out.

    Raises:
        SpecError: the specs break a rule; every fault that was found is in it.
    """
    specs = load_specs(folder)
    option_specs, bundles = check(specs, folder)
    if handlers is not None:
        operations = {surface: read_operations(surface, document) for surface, document in bundles.items()}
        _raise(check_handlers(operations, handlers))
    return generate(bundles, option_specs)


def check(specs: Specs, folder: Path) -> tuple[OptionSpecs, dict[str, dict[str, Json]]]:
    """The options and the bundle of each surface, after every rule was applied.

    Raises:
        SpecError: with the faults of the files, else those of bundling, else those of the bundles.
    """
    _raise(list(check_shape(specs)))
    option_specs = read_options(specs)
    problems = check_specs(specs, folder, option_specs.types)
    bundles = {}
    for file in specs.files:
        surface = file.removesuffix(".yaml")
        try:
            # files without paths are bundled for their references only
            document = bundle(specs, surface)
        except SpecError as error:
            problems += error.problems
            continue
        if surface in specs.surfaces:
            bundles[surface] = document
    _raise(problems)
    _raise(check_bundles(specs, bundles))
    return option_specs, bundles


def generate(bundles: dict[str, dict[str, Json]], option_specs: OptionSpecs) -> dict[str, str]:
    """The text of every file, by path relative to generated/."""
    files = {
        "__init__.py": f'{header("specs/*.yaml")}\n"""What codegen makes of the specs; never edited."""\n',
        "py.typed": "",
        "base.py": render("base.py.j2", source="codegen/templates/base.py.j2"),
        "runtime.py": render("runtime.py.j2", source="codegen/templates/runtime.py.j2"),
        "dispatch.py": dispatch(bundles),
        "options.py": options(option_specs),
    }
    for surface, document in bundles.items():
        title = f'"""The {surface} surface: document, models, routes and field rules."""'
        files[f"{surface}/__init__.py"] = f"{header(f'specs/{surface}.yaml')}\n{title}\n"
        files[f"{surface}/openapi.json"] = _openapi(surface, document)
        files[f"{surface}/models.py"] = models(surface, document, option_specs.defaults)
        files[f"{surface}/fields.py"] = fields(surface, document, option_specs.names)
        files[f"{surface}/routes.py"] = routes(surface, document)
    return files


def _openapi(surface: str, document: dict[str, Json]) -> str:
    marked = {"x-generated": f"{MARK} from specs/{surface}.yaml; don't edit, run `make codegen`.", **document}
    return json.dumps(marked, indent=2, ensure_ascii=False) + "\n"


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise SpecError(problems)
