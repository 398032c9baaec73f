"""One broken spec per rule: the exact line that stops codegen, with file, path in the document and remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from codegen.__main__ import main
from codegen.document import SpecError
from codegen.pipeline import compile_specs

Replace = Callable[[str, str, str], None]

NATIVE = "native.yaml"


class Rule(NamedTuple):
    """Replacing ``old`` by ``new`` in a file gives this problem ``at`` this place."""

    file: str
    old: str
    new: str
    at: str
    problem: str
    remedy: str


RULES: dict[str, Rule] = {
    "duplicate operation ID": Rule(
        file="native.yaml",
        old="operationId: native.embedding.create",
        new="operationId: native.completion.create",
        at="specs/native.yaml: paths./embedding.post.operationId",
        problem="'native.completion.create' is taken by specs/native.yaml: paths./completion.post",
        remedy="Give each operation an ID of its own; use x-alias-of for a second path",
    ),
    "operation ID of another surface": Rule(
        file="openai.yaml",
        old="operationId: openai.models.retrieve",
        new="operationId: native.models.retrieve",
        at="specs/openai.yaml: paths./v1/models/{model}.get",
        problem="operationId 'native.models.retrieve' names no handler",
        remedy="Write openai.<module>.<function>",
    ),
    "path of two surfaces": Rule(
        file="openai.yaml",
        old="/v1/chat/completions:",
        new="/completions:",
        at="specs/openai.yaml: paths./completions",
        problem="specs/native.yaml answers this path as well",
        remedy="Keep it on one surface",
    ),
    "path parameter that isn't declared": Rule(
        file="native.yaml",
        old="/slots/{id_slot}:",
        new="/slots/{slot}:",
        at="specs/native.yaml: paths./slots/{slot}.post",
        problem="the path parameter 'slot' isn't in both the path and parameters",
        remedy="Add or rename it",
    ),
    "open object": Rule(
        file="common.yaml",
        old="    ErrorBody:\n      type: object\n      additionalProperties: false\n",
        new="    ErrorBody:\n      type: object\n",
        at="specs/common.yaml: components.schemas.ErrorBody",
        problem="is an open object",
        remedy='Add additionalProperties: false, or x-open: "<why it is open>"',
    ),
    "closed object with x-open": Rule(
        file="native.yaml",
        old="      x-open: response_fields chooses its keys",
        new="      x-open: response_fields chooses its keys\n      additionalProperties: false",
        at="specs/native.yaml: components.schemas.Projection",
        problem="is closed and says x-open",
        remedy="Remove x-open or additionalProperties: false",
    ),
    "closed object under allOf": Rule(
        file="native.yaml",
        old='data: {$ref: "#/components/schemas/CompletionChunk"}',
        new='data: {allOf: [{$ref: "#/components/schemas/CompletionChunk"}]}',
        at="specs/native.yaml: components.schemas.CompletionEvent.properties.data.allOf[0]",
        problem="is a closed object under allOf, which rejects what its siblings add",
        remedy="Write one object with all properties (x-include shares them)",
    ),
    "unknown reference": Rule(
        file="native.yaml",
        old='prompt: {$ref: "#/components/schemas/Prompt"}',
        new='prompt: {$ref: "#/components/schemas/Promt"}',
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.prompt.$ref",
        problem="unknown $ref '#/components/schemas/Promt'",
        remedy="Did you mean 'Prompt'?",
    ),
    "unknown reference in a shared file": Rule(
        file="common.yaml",
        old='error: {$ref: "#/components/schemas/ErrorBody"}',
        new='error: {$ref: "#/components/schemas/ErrorBdy"}',
        at="specs/common.yaml: components.schemas.Error.properties.error.$ref",
        problem="unknown $ref '#/components/schemas/ErrorBdy'",
        remedy="Did you mean 'ErrorBody'?",
    ),
    "reference to an unknown file": Rule(
        file="openai.yaml",
        old='default: {$ref: "common.yaml#/components/responses/Error"}',
        new='default: {$ref: "comon.yaml#/components/responses/Error"}',
        at="specs/openai.yaml: paths./v1/chat/completions.post.responses.default.$ref",
        problem="'comon.yaml#/components/responses/Error' names no spec file",
        remedy="Did you mean 'common.yaml'?",
    ),
    "one name in two files": Rule(
        file="native.yaml",
        old="    CompletionChunk:\n",
        new="    ErrorBody: {type: string}\n    CompletionChunk:\n",
        at="specs/common.yaml: components.schemas.Error.properties.error.$ref",
        problem="'ErrorBody' is defined in both native.yaml and common.yaml",
        remedy="Rename one of them: a surface's components share one name space",
    ),
    "unknown property set": Rule(
        file="openai.yaml",
        old='x-include: ["common.yaml#/components/x-property-sets/sampling"]',
        new='x-include: ["common.yaml#/components/x-property-sets/smpling"]',
        at="specs/openai.yaml: components.schemas.ChatRequest.x-include[0]",
        problem="unknown property set 'common.yaml#/components/x-property-sets/smpling'",
        remedy="Did you mean 'sampling'?",
    ),
    "alias of an unknown path": Rule(
        file="native.yaml",
        old="x-alias-of: /completion",
        new="x-alias-of: /complete",
        at="specs/native.yaml: paths./completions.x-alias-of",
        problem="'/complete' is no path of its own",
        remedy="Did you mean '/completion'?",
    ),
    "alias path with content": Rule(
        file="native.yaml",
        old="x-alias-of: /completion",
        new="x-alias-of: /completion\n    summary: also",
        at="specs/native.yaml: paths./completions",
        problem="is an alias and has content of its own",
        remedy="Keep only x-alias-of",
    ),
    "alias that is a property": Rule(
        file="native.yaml",
        old="x-aliases: [max_completion_tokens, max_tokens]",
        new="x-aliases: [max_completion_tokens, stop]",
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.n_predict.x-aliases",
        problem="the alias 'stop' is a property already",
        remedy="Remove one of the two",
    ),
    "unknown x- key on a schema": Rule(
        file="common.yaml",
        old="x-clamp: [0, 100]",
        new="x-clmp: [0, 100]",
        at="specs/common.yaml: components.x-property-sets.sampling.top_k.x-clmp",
        problem="unknown x- key 'x-clmp' on a schema",
        remedy="Did you mean 'x-clamp'?",
    ),
    "x- key in the wrong place": Rule(
        file="native.yaml",
        old="description: One vector per text.",
        new="x-stream: {done: true}\n          description: One vector per text.",
        at="specs/native.yaml: paths./embedding.post.responses.200.x-stream",
        problem="unknown x- key 'x-stream' here",
        remedy="Remove it; x- keys stand on schemas, operations and path items",
    ),
    "x- key with a wrong value": Rule(
        file="native.yaml",
        old="x-stream: {done: false}",
        new="x-stream: {done: no}",
        at="specs/native.yaml: paths./completion.post.x-stream.done",
        problem='"no" is not of type "boolean"',
        remedy="See $defs.operation in specs/x-keys.schema.json",
    ),
    "object without a name": Rule(
        file="native.yaml",
        old='items: {$ref: "#/components/schemas/Lora"}',
        new="items: {type: object, additionalProperties: false, properties: {}}",
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.lora.items",
        problem="is an object without a name",
        remedy="Move it to components.schemas and refer to it",
    ),
    "object that is no class": Rule(
        file="native.yaml",
        old="    Projection:",
        new="    projection:",
        at="specs/native.yaml: components.schemas.projection",
        problem="'projection' is no class name",
        remedy="Call it LikeThis",
    ),
    "properties without a type": Rule(
        file="common.yaml",
        old="    ErrorBody:\n      type: object\n",
        new="    ErrorBody:\n",
        at="specs/common.yaml: components.schemas.ErrorBody",
        problem="has properties but no type",
        remedy="Add type: object",
    ),
    "nullable beside a reference": Rule(
        file="native.yaml",
        old='logit_bias: {$ref: "#/components/schemas/LogitBias"}',
        new='logit_bias: {$ref: "#/components/schemas/LogitBias", nullable: true}',
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.logit_bias.nullable",
        problem="nullable beside $ref: tools disagree on its meaning",
        remedy="Put nullable: true on one typed branch",
    ),
    "nullable without a type": Rule(
        file="native.yaml",
        old="index: {type: integer}",
        new="index: {nullable: true}",
        at="specs/native.yaml: components.schemas.Completion.properties.index.nullable",
        problem="nullable without a type means nothing",
        remedy="Add a type beside it",
    ),
    "nullable enum without null": Rule(
        file="native.yaml",
        old="enum: [text, null], nullable: true",
        new="enum: [text], nullable: true",
        at="specs/native.yaml: components.schemas.CompletionChunk.properties.kind.enum",
        problem="a nullable enum doesn't list null",
        remedy="Add null to the enum",
    ),
    "enum with null that isn't nullable": Rule(
        file="native.yaml",
        old="enum: [text, null], nullable: true",
        new="enum: [text, null]",
        at="specs/native.yaml: components.schemas.CompletionChunk.properties.kind.enum",
        problem="an enum lists null but isn't nullable",
        remedy="Add nullable: true",
    ),
    "type of another dialect": Rule(
        file="native.yaml",
        old="index: {type: integer}",
        new="index: {type: [integer]}",
        at="specs/native.yaml: components.schemas.Completion.properties.index.type",
        problem="['integer'] is no type of OpenAPI 3.0",
        remedy="Use one type name, and nullable for null",
    ),
    "array without items": Rule(
        file="native.yaml",
        old="probabilities: {type: array, items: {type: number}",
        new="probabilities: {type: array",
        at="specs/native.yaml: components.schemas.Completion.properties.probabilities",
        problem="is an array without items",
        remedy="Add items ({} takes anything)",
    ),
    "clamp of something else": Rule(
        file="native.yaml",
        old="index: {type: integer}",
        new="index: {type: string, x-clamp: [0, 1]}",
        at="specs/native.yaml: components.schemas.Completion.properties.index.x-clamp",
        problem="x-clamp stands on a schema that isn't a number",
        remedy="Remove it",
    ),
    "required property that isn't there": Rule(
        file="native.yaml",
        old="required: [index, content, stopping_word, object]",
        new="required: [index, contents, stopping_word, object]",
        at="specs/native.yaml: components.schemas.Completion.required",
        problem="requires 'contents', which is no property",
        remedy="Add or rename it",
    ),
    "unknown option": Rule(
        file="native.yaml",
        old="x-option: --predict",
        new="x-option: --predct",
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.n_predict.x-option",
        problem="unknown option '--predct'",
        remedy="Did you mean '--predict'?",
    ),
    "option of another type": Rule(
        file="native.yaml",
        old="x-option: --predict",
        new="x-option: --lora",
        at="specs/native.yaml: components.schemas.CompletionRequest.properties.n_predict.x-option",
        problem="'--lora' is of type array, the field of type integer",
        remedy="Make them agree, or let the handler read the option",
    ),
    "optional request field that refuses null": Rule(
        file="native.yaml",
        old="scale: {type: number, nullable: true, default: 1}",
        new="scale: {type: number, default: 1}",
        at="specs/native.yaml: components.schemas.Lora.properties.scale",
        problem="is an optional request field that refuses null",
        remedy="Add nullable: true beside a type (null inside an enum), or list it in required",
    ),
    "included request field that refuses null": Rule(
        file="common.yaml",
        old="type: integer\n        nullable: true\n        default: 40",
        new="type: integer\n        default: 40",
        at="specs/common.yaml: components.x-property-sets.sampling.top_k",
        problem="is an optional request field that refuses null",
        remedy="Add nullable: true beside a type (null inside an enum), or list it in required",
    ),
    "request body without a name": Rule(
        file="openai.yaml",
        old='schema: {$ref: "#/components/schemas/ChatRequest"}',
        new="schema: {type: string}",
        at="specs/openai.yaml: paths./v1/chat/completions.post.requestBody.content.application/json.schema",
        problem="is a request body without a name",
        remedy="Move it to components.schemas and refer to it",
    ),
    "operation without error responses": Rule(
        file="openai.yaml",
        old='        404: {$ref: "common.yaml#/components/responses/Error"}\n',
        new="",
        at="specs/openai.yaml: paths./v1/models/{model}.get.responses",
        problem="lists no error response",
        remedy="Add default or the 4xx answers",
    ),
    "default that violates its schema": Rule(
        file="openai.yaml",
        old="temperature: {type: number, nullable: true, minimum: 0, default: 1}",
        new="temperature: {type: number, nullable: true, minimum: 0, default: -1}",
        at="specs/openai.yaml: components.schemas.ChatRequest.properties.temperature.default",
        problem="the default -1 breaks its own schema",
        remedy="Correct the default or the bounds",
    ),
    "document that Connexion refuses": Rule(
        file="native.yaml",
        old="description: One vector per text.",
        new="summary: One vector per text.",
        at="specs/native.yaml: paths./embedding.post.responses.200",
        problem="Connexion refuses it: 'description' is a required property",
        remedy="Write OpenAPI 3.0.3",
    ),
    "nothing behind a colon": Rule(
        file="native.yaml",
        old="index: {type: integer}",
        new="index:",
        at="specs/native.yaml: components.schemas.Completion.properties.index",
        problem='null is not of type "object"',
        remedy="Write what belongs here, or remove the key",
    ),
    "repeated key": Rule(
        file="native.yaml",
        old="index: {type: integer}",
        new="index: {type: integer}\n        index: {type: integer}",
        at="specs/native.yaml: line 180, column 9",
        problem="the key 'index' is there twice",
        remedy="Correct the YAML",
    ),
    "option without a reason": Rule(
        file="options.yaml",
        old="    reason: The answer is the same either way.\n",
        new="",
        at="specs/options.yaml: options[4]",
        problem="is inert without a reason",
        remedy="Add reason: what to do instead, or why it is safe",
    ),
    "option spelling that is taken": Rule(
        file="options.yaml",
        old="spellings: [--temp]",
        new="spellings: [--temp, -n]",
        at="specs/options.yaml: options[1]",
        problem="'-n' is taken by 'n_predict'",
        remedy="Rename or merge the two",
    ),
    "option default of another type": Rule(
        file="options.yaml",
        old="default: 0.8",
        new="default: hot",
        at="specs/options.yaml: options[1].default",
        problem="'hot' is no number",
        remedy="Correct the default or the type",
    ),
    "option default that is no choice": Rule(
        file="options.yaml",
        old="default: auto",
        new="default: maybe",
        at="specs/options.yaml: options[4].default",
        problem="'maybe' is none of the choices",
        remedy="Add it to choices",
    ),
    "unknown key of an option": Rule(
        file="options.yaml",
        old="metavar: T",
        new="metvar: T",
        at="specs/options.yaml: options[1].metvar",
        problem="unknown key 'metvar'",
        remedy="Did you mean 'metavar'?",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str, specs: Path, replace: Replace) -> None:
    broken = RULES[rule]
    replace(*broken[:3])
    with pytest.raises(SpecError) as caught:
        compile_specs(specs, None)
    expected = f"{broken.at}: {broken.problem}. {broken.remedy}"
    assert expected in [str(problem) for problem in caught.value.problems]


def test_all_faults_are_reported_at_once_with_exit_status_1(
    specs: Path, replace: Replace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [RULES[rule] for rule in ("open object", "unknown reference", "unknown option")]
    for rule in broken:
        replace(*rule[:3])
    assert main(["--no-handlers", "--specs", str(specs), "--out", str(tmp_path / "out")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert set(lines[:-1]) == {f"{rule.at}: {rule.problem}. {rule.remedy}" for rule in broken}
    assert lines[-1] == "3 problems; nothing was written"
    assert not (tmp_path / "out").exists()


def test_x_keys_in_data_and_header_names_are_no_x_keys(specs: Path, replace: Replace) -> None:
    replace(
        NATIVE,
        "description: One vector per text.",
        "description: One vector per text.\n          headers: {x-request-id: {schema: {type: string}}}",
    )
    replace(NATIVE, "index: {type: integer}", "index: {type: integer, example: {x-foo: {x-bar: {}}}}")
    compile_specs(specs, None)
