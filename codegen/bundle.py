"""Resolves the spec files into one self-contained OpenAPI document per surface.

What changes on the way, so that Connexion, validators and readers need no extension of ours:

* references to other files become local components;
* ``x-include`` is replaced by the properties of the named sets, a property written in place wins;
* ``x-aliases`` are published as deprecated properties with the schema of the canonical one (``x-alias-for``);
* ``x-alias-of`` path items get copies of the operations they name, under operation IDs of their own;
* ``default`` is dropped where ``x-option`` names a server option, which supplies the default at run time.

The other x- keys stay: the documentation, the field rules and the server read them.
"""

from __future__ import annotations

import copy
from typing import Any

from codegen.document import (
    Json,
    Path_,
    Problem,
    SpecError,
    Specs,
    is_property_map,
    nearest,
    operations,
    walk,
)

Document = dict[str, Any]

_COMPONENTS = (
    "schemas",
    "responses",
    "parameters",
    "requestBodies",
    "headers",
    "securitySchemes",
    "examples",
)


_LITERAL = ("default", "enum", "example", "examples", "x-compat")
"""Keys whose values are data, not schemas: a "$ref" in them is no reference."""


def bundle(specs: Specs, surface: str) -> Document:
    """One surface's document, self-contained, in the order of its file; imported components come last.

    Raises:
        SpecError: a reference, an included set or an aliased path doesn't exist, or two names collide.
    """
    return _Bundler(specs, f"{surface}.yaml").run()


class _Bundler:
    """Bundles one file; references found on the way queue components of other files."""

    def __init__(self, specs: Specs, file: str) -> None:
        self.specs = specs
        self.file = file
        self.problems: list[Problem] = []
        self.owners: dict[tuple[str, str], str] = {}
        self.imported: set[tuple[str, str]] = set()
        self.queue: list[tuple[str, str, str]] = []

    def run(self) -> Document:
        source = self.specs.files[self.file]
        local = source.get("components", {})
        for kind in _COMPONENTS:
            for name in local.get(kind, {}):
                self.owners[kind, name] = self.file
        document: Document = {
            key: self._resolve(value, self.file, (key,))
            for key, value in source.items()
            if key != "components"
        }
        components: dict[str, dict[str, Json]] = {}
        for kind in _COMPONENTS:
            if kind in local:
                components[kind] = {
                    name: self._resolve(node, self.file, ("components", kind, name))
                    for name, node in local[kind].items()
                }
        # a set that nothing includes has references too
        self._resolve(local.get("x-property-sets", {}), self.file, ("components", "x-property-sets"))
        while self.queue:
            file, kind, name = self.queue.pop(0)
            node = self.specs.files[file]["components"][kind][name]
            resolved = self._resolve(node, file, ("components", kind, name))
            components.setdefault(kind, {})[name] = resolved
        document["components"] = components
        for path, node in walk(document):
            if len(path) == 3 and path[:2] == ("components", "schemas") and "properties" in node:
                self._finish_properties(node, path)
        self._derive_operations(document)
        if self.problems:
            raise SpecError(self.problems)
        return {"openapi": document.pop("openapi", "3.0.3"), **document}

    def _fault(self, file: str, path: Path_, problem: str, remedy: str) -> None:
        self.problems.append(self.specs.problem(file, path, problem, remedy))

    def _resolve(self, node: Json, file: str, path: Path_) -> Json:
        """A copy of a node with its references made local and its included properties written out."""
        if isinstance(node, list):
            return [self._resolve(value, file, (*path, index)) for index, value in enumerate(node)]
        if not isinstance(node, dict):
            return node
        if "x-include" in node and isinstance(node["x-include"], list):
            node, origins = self._include(node, file, path)
            result = {
                key: self._resolve(v, file, (*path, key)) for key, v in node.items() if key != "properties"
            }
            properties = {}
            for name, value in node["properties"].items():
                origin, place = origins.get(name, (file, (*path, "properties", name)))
                properties[name] = self._resolve(value, origin, place)
            # the position of `properties` in a schema means nothing: last is fine
            return {**result, "properties": properties}
        if is_property_map(path):
            return {key: self._resolve(value, file, (*path, key)) for key, value in node.items()}
        result = {}
        for key, value in node.items():
            here = (*path, key)
            if key == "$ref" and isinstance(value, str):
                result[key] = self._reference(value, file, here)
            elif key == "mapping" and path[-1:] == ("discriminator",):
                result[key] = {tag: self._reference(ref, file, (*here, tag)) for tag, ref in value.items()}
            elif key in _LITERAL and path[-1:] != ("responses",):
                result[key] = copy.deepcopy(value)
            else:
                result[key] = self._resolve(value, file, here)
        return result

    def _reference(self, reference: str, file: str, path: Path_) -> str:
        """The local form of a reference; queues a component of another file for import."""
        target_file, pointer = _split(reference, file)
        parts = pointer.split("/")
        document = self.specs.files.get(target_file)
        if document is None:
            self._fault(
                file, path, f"'{reference}' names no spec file", nearest(target_file, self.specs.files)
            )
            return reference
        if len(parts) != 4 or parts[:2] != ["", "components"] or parts[2] not in _COMPONENTS:
            self._fault(
                file,
                path,
                f"'{reference}' isn't a component",
                "Refer to #/components/<kind>/<name>, maybe of a file",
            )
            return reference
        kind, name = parts[2], parts[3]
        known = document.get("components", {}).get(kind, {})
        if name not in known:
            self._fault(file, path, f"unknown $ref '{reference}'", nearest(name, known))
            return reference
        owner = self.owners.setdefault((kind, name), target_file)
        if owner != target_file:
            self._fault(
                file,
                path,
                f"'{name}' is defined in both {owner} and {target_file}",
                "Rename one of them: a surface's components share one name space",
            )
        elif target_file != self.file and (kind, name) not in self.imported:
            self.imported.add((kind, name))
            self.queue.append((target_file, kind, name))
        return f"#/components/{kind}/{name}"

    def _include(self, node: Json, file: str, path: Path_) -> tuple[Json, dict[str, tuple[str, Path_]]]:
        """A schema with the properties of its sets, and where each included property was written."""
        properties: dict[str, Json] = {}
        origins: dict[str, tuple[str, Path_]] = {}
        for index, reference in enumerate(node["x-include"]):
            target_file, pointer = _split(reference, file)
            name = pointer.removeprefix("/components/x-property-sets/")
            sets = self.specs.files.get(target_file, {}).get("components", {}).get("x-property-sets", {})
            if not pointer.startswith("/components/x-property-sets/") or name not in sets:
                place = (*path, "x-include", index)
                self._fault(file, place, f"unknown property set '{reference}'", nearest(name, sets))
                continue
            for key, value in sets[name].items():
                properties[key] = value
                origins[key] = (target_file, ("components", "x-property-sets", name, key))
        for key, value in (node.get("properties") or {}).items():
            properties[key] = value
            origins.pop(key, None)
        return {**{k: v for k, v in node.items() if k != "x-include"}, "properties": properties}, origins

    def _finish_properties(self, schema: Json, path: Path_) -> None:
        """Publishes aliases, drops defaults that a server option supplies, spells out inert values."""
        properties: dict[str, Json] = {}
        required = list(schema.get("required", []))
        either: list[list[str]] = []
        for name, node in schema["properties"].items():
            properties[name] = node
            if not isinstance(node, dict):
                continue
            compat = node.get("x-compat", {})
            refused = isinstance(compat, dict) and compat.get("state") == "refused"
            if refused and "default" in node:
                node["x-compat"] = {"inert": node["default"], **compat}
            if "x-option" in node:
                node.pop("default", None)
            aliases = node.get("x-aliases", [])
            for alias in aliases:
                if alias in schema["properties"] or alias in properties:
                    file, place = self.specs.written(self.file, str(path[-1]), name)
                    self._fault(
                        file,
                        (*place, "x-aliases"),
                        f"the alias '{alias}' is a property already",
                        "Remove one of the two",
                    )
                properties[alias] = _alias(name, node)
            if aliases and name in required:
                required.remove(name)
                either.append([name, *aliases])
        schema["properties"] = properties
        if either:
            schema["required"] = required
            if not required:
                del schema["required"]
            groups: list[Json] = [{"anyOf": [{"required": [name]} for name in names]} for names in either]
            schema.update(groups[0] if len(groups) == 1 else {"allOf": groups})

    def _derive_operations(self, document: Document) -> None:
        """Fills path items that are an alias of another one."""
        paths: dict[str, Json] = document.get("paths", {})
        counts: dict[str, int] = {}
        for url, item in paths.items():
            target = item.get("x-alias-of") if isinstance(item, dict) else None
            if target is None:
                continue
            original = paths.get(target)
            if original is None or "x-alias-of" in original:
                here = ("paths", url, "x-alias-of")
                known = [name for name, other in paths.items() if "x-alias-of" not in other]
                self._fault(self.file, here, f"'{target}' is no path of its own", nearest(target, known))
                continue
            counts[target] = counts.get(target, 0) + 1
            suffix = ".alias" if counts[target] == 1 else f".alias{counts[target]}"
            derived = copy.deepcopy(original)
            for _, _, _, operation in operations({"paths": {url: derived}}):
                if "operationId" in operation:
                    operation["operationId"] += suffix
            item.update(derived)


def _split(reference: str, file: str) -> tuple[str, str]:
    target, _, pointer = reference.partition("#")
    return target.removeprefix("./") or file, pointer


def _alias(name: str, node: Json) -> Json:
    """The published form of an alias: same schema, deprecated, marked with the name that it stands for."""
    kept = {key: value for key, value in node.items() if key not in ("x-aliases", "x-compat", "default")}
    return {
        **copy.deepcopy(kept),
        "description": f"Another name of `{name}`.",
        "deprecated": True,
        "x-alias-for": name,
    }
