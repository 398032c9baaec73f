"""Questions about schemas of a bundled document."""

from __future__ import annotations

from collections.abc import Collection

from codegen.document import Json, operations, subschemas


def is_object(schema: dict[str, Json]) -> bool:
    """Whether a schema says that it describes objects."""
    return schema.get("type") == "object" or "properties" in schema or "additionalProperties" in schema


def ref_name(schema: Json) -> str | None:
    """The component schema that a schema refers to, None when it doesn't."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return str(reference).rsplit("/", 1)[1] if reference else None


def deref(node: dict[str, Json], document: dict[str, Json]) -> dict[str, Json]:
    """A node, or the component it refers to, of whatever kind."""
    while "$ref" in node:
        _, _, kind, name = node["$ref"].split("/")
        node = document["components"][kind][name]
    return node


def request_schemas(document: dict[str, Json]) -> set[str]:
    """Names of the object schemas that a request body can hold, at any depth."""
    every = document.get("components", {}).get("schemas", {})
    return {name for name in request_reachable(document) if is_object(every[name])}


def request_bodies(document: dict[str, Json]) -> list[str]:
    """Names of the schemas of the request bodies themselves, in document order."""
    found = [
        ref_name(media.get("schema", {}))
        for _, _, _, operation in operations(document)
        for media in deref(operation.get("requestBody", {}), document).get("content", {}).values()
    ]
    return [name for name in dict.fromkeys(found) if name is not None]


def request_reachable(document: dict[str, Json]) -> set[str]:
    """Names of all schemas that a request body can hold, at any depth."""
    return reachable(
        {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in request_bodies(document)]}, document
    )


def reachable(schema: Json, document: dict[str, Json], within: Collection[str] | None = None) -> set[str]:
    """Names of the component schemas that a schema leads to, directly or (``within`` these) by others."""
    found: set[str] = set()
    queue = [schema]
    while queue:
        for _, node in subschemas(queue.pop()):
            name = ref_name(node)
            if name and name not in found and (within is None or name in within):
                found.add(name)
                queue.append(document["components"]["schemas"][name])
    return found


def accepts_null(schema: dict[str, Json], document: dict[str, Json]) -> bool:
    """Whether a schema of a bundle takes null."""
    if "$ref" in schema:
        return accepts_null(deref(schema, document), document)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return any(accepts_null(branch, document) for branch in schema[key])
    if "allOf" in schema:
        return all(accepts_null(branch, document) for branch in schema["allOf"])
    if "enum" in schema and None not in schema["enum"]:
        return False
    return schema.get("nullable") is True or "type" not in schema
