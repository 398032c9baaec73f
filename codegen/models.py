"""Struct classes of a surface, by datamodel-code-generator from the carrier of its bundle."""

from __future__ import annotations

import ast
import json
import textwrap
import warnings
from collections import defaultdict
from typing import Any

import datamodel_code_generator as dcg
from datamodel_code_generator.enums import DataModelType
from datamodel_code_generator.format import PythonVersion
from datamodel_code_generator.parser import LiteralType

from codegen.carrier import Carrier, FieldLayout, build
from codegen.document import Json
from codegen.render import LINE_LENGTH, TEMPLATES, formatted, header

_DOC = '''"""Requests and responses of the {surface} surface as msgspec structs.

Fields of requests that are absent are None or have the default of the spec. Optional fields of responses are
UNSET and left out of the JSON; None prints null. Keys are written in the order of the spec.
"""
'''


def models(surface: str, document: dict[str, Json], option_defaults: dict[str, Json]) -> str:
    """The source of models.py: one class per closed object of the bundle, one type alias per other schema."""
    carrier = build(document, option_defaults)
    bare = {
        "openapi": "3.1.0",
        "info": {"title": surface, "version": "1"},
        "paths": {},
        "components": {"schemas": carrier.schemas},
    }
    with warnings.catch_warnings():
        # it warns of unions that msgspec can't decode, not knowing our tags and which models are only encoded
        warnings.simplefilter("ignore")
        code = _generate(surface, bare, carrier)
    result = formatted(_without_pass(code))
    _verify(result, carrier)
    return result


def _generate(surface: str, bare: dict[str, Json], carrier: Carrier) -> str:
    code = dcg.generate(
        json.dumps(bare),
        input_filename=f"{surface}.json",
        input_file_type=dcg.InputFileType.OpenAPI,
        output_model_type=DataModelType.MsgspecStruct,
        target_python_version=PythonVersion.PY_311,
        base_class="mlxcel.generated.base.Model",
        keyword_only=True,
        strict_nullable=True,
        enum_field_as_literal=LiteralType.All,
        use_type_alias=True,
        use_standard_collections=True,
        use_union_operator=True,
        use_typed_nullable_map_values=True,
        additional_imports=["typing.ClassVar", "msgspec.UNSET", "msgspec.UnsetType", "msgspec.field"],
        custom_template_dir=TEMPLATES,
        extra_template_data=_template_data(carrier),
        custom_file_header=f"{header(f'specs/{surface}.yaml')}\n{_DOC.format(surface=surface)}",
        disable_timestamp=True,
        formatters=[],
    )
    assert isinstance(code, str)
    return code


def _template_data(carrier: Carrier) -> defaultdict[str, dict[str, Any]]:
    data: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, layout in carrier.layouts.items():
        doc = carrier.schemas[name].get("description", "")
        tag, value = carrier.tags.get(name, ("", ""))
        data[name] = {
            "doc": docstring(doc),
            "rows": [_row(field) for field in layout],
            "tag": tag,
            "header": f", tag_field={tag!r}, tag={value!r}" if tag else "",
            "constant": f"ClassVar[Literal[{value!r}]] = {value!r}",
        }
    return data


def _row(field: FieldLayout) -> dict[str, Any]:
    branches = (" | UnsetType" if field.unset else "") + (" | None" if field.null else "")
    factories = {"[]": "list", "{}": "dict"}
    mutable = field.default[:1] in ("[", "{")
    if mutable:
        default = f"default_factory={factories.get(field.default, f'lambda: {field.default}')}"
    else:
        default = f"default={field.default}" if field.default else ""
    renamed = ", ".join(part for part in (f"name={field.wire!r}", default) if part)
    plain = f" = field({default})" if mutable else f" = {field.default}" if field.default else ""
    return {
        "wire": field.wire,
        "branches": branches,
        "doc": docstring(field.doc),
        # indexed by whether the attribute is called like the key on the wire
        "assignment": {True: plain, False: f" = field({renamed})"},
    }


def docstring(text: str, indent: str = "    ") -> str:
    """A description as a docstring, wrapped; empty for no text."""
    paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    if not any(paragraphs):
        return ""
    width = LINE_LENGTH - len(indent)
    lines: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        safe = paragraph.replace("\\", "\\\\").replace('"""', '\\"""')
        lines += [""] * bool(number) + textwrap.wrap(safe, width - (6 if len(paragraphs) == 1 else 3))
    if lines[-1].endswith('"'):
        lines[-1] += " "
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""'
    body = "\n".join(f"{indent}{line}".rstrip() for line in lines[1:])
    return f'{indent}"""{lines[0]}\n{body}\n{indent}"""'


def _without_pass(code: str) -> str:
    """Drops the ``pass`` that the template ends every class with where the class has a body without it."""
    tree = ast.parse(code)
    lines = code.splitlines(keepends=True)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and len(node.body) > 1 and isinstance(node.body[-1], ast.Pass):
            lines[node.body[-1].lineno - 1] = ""
    return "".join(lines)


def _verify(code: str, carrier: Carrier) -> None:
    """Fails when the generator renamed a class or lost a field: names in routes.py would dangle."""
    classes = {node.name: node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)}
    for name, layout in carrier.layouts.items():
        if name not in classes:
            raise RuntimeError(f"the model generator made no class {name}: choose another schema name")
        fields = sum(isinstance(node, ast.AnnAssign) for node in classes[name].body)
        if fields != len(layout):
            raise RuntimeError(
                f"the model generator gave {name} {fields} fields for {len(layout)} properties"
            )
