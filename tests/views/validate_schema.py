#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check a JSON document against a JSON Schema (2020-12), with the part of that language that docs/schema uses.

    python3 tests/views/validate_schema.py docs/schema/attend.schema.json [DOCUMENT or - for standard input]

Strict on both sides: a keyword that this script does not know is an error, so no rule of a schema is silently skipped, and
a document must be valid UTF-8 without NaN or infinities. Prints each fault with its place; exit code 1 if there is any.
"""

import json
import math
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: not isinstance(v, bool) and (isinstance(v, int) or isinstance(v, float) and v.is_integer()),
}


def same(one, other):
    """Equality of JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def resolve(reference, root):
    if not reference.startswith("#/"):
        raise ValueError(f"schema: $ref {reference}: only places of the same schema are known")
    schema = root
    for part in reference[2:].split("/"):
        schema = schema[part]
    return schema


def check_object(value, schema, place, root):
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}: {name!r} is missing"
    known = schema.get("properties", {})
    for name, content in value.items():
        if name in known:
            yield from faults(content, known[name], f"{place}.{name}", root)
        elif "additionalProperties" in schema:
            rest = schema["additionalProperties"]
            if rest is False:
                yield f"{place}: {name!r} is not expected"
            else:
                yield from faults(content, rest, f"{place}.{name}", root)


def check_array(value, schema, place, root):
    if len(value) < schema.get("minItems", 0):
        yield f"{place}: {len(value)} items, fewer than {schema['minItems']}"
    if len(value) > schema.get("maxItems", math.inf):
        yield f"{place}: {len(value)} items, more than {schema['maxItems']}"
    if "items" in schema:
        for index, content in enumerate(value):
            yield from faults(content, schema["items"], f"{place}[{index}]", root)


def check_number(value, schema, place):
    if not math.isfinite(value):
        yield f"{place}: {value} is not finite"
    if value < schema.get("minimum", -math.inf):
        yield f"{place}: {value} is below {schema['minimum']}"
    if value > schema.get("maximum", math.inf):
        yield f"{place}: {value} is above {schema['maximum']}"


NOTES = {"$schema", "$id", "$defs", "title", "description", "examples"}
RULES = {"$ref", "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties", "items", "minItems",
         "maxItems", "minimum", "maximum", "minLength"}


def faults(value, schema, place="document", root=None):
    """Yields one line for each way in which value does not obey schema."""
    root = schema if root is None else root
    if schema is True:
        return
    unknown = set(schema) - NOTES - RULES
    if unknown:
        raise ValueError(f"schema for {place}: unknown keywords {sorted(unknown)}")
    if "$ref" in schema:
        yield from faults(value, resolve(schema["$ref"], root), place, root)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[name](value) for name in types):
            yield f"{place}: {json.dumps(value)[:60]} is not of type {' or '.join(types)}"
            return
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        yield f"{place}: {json.dumps(value)[:60]} is none of {schema['enum']}"
    if "const" in schema and not same(value, schema["const"]):
        yield f"{place}: {json.dumps(value)[:60]} is not {schema['const']!r}"
    if "anyOf" in schema:
        ways = [list(faults(value, one, place, root)) for one in schema["anyOf"]]
        if all(ways):
            yield f"{place}: fits none of {len(ways)} ways: " + "; ".join(way[0] for way in ways)
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{place}: {len(value)} characters, fewer than {schema['minLength']}"
    if isinstance(value, dict):
        yield from check_object(value, schema, place, root)
    if isinstance(value, list):
        yield from check_array(value, schema, place, root)
    if TYPES["number"](value):
        yield from check_number(value, schema, place)


def validate(value, schema):
    """Raises ValueError with all faults, if there are any."""
    found = list(faults(value, schema))
    if found:
        raise ValueError("\n".join(found))


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def main(arguments):
    with open(arguments[0], encoding="utf-8") as file:
        schema = json.load(file)
    source = arguments[1] if len(arguments) > 1 else "-"
    if source == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(source, "rb") as file:
            data = file.read()
    try:
        validate(json.loads(data.decode("utf-8"), parse_constant=refuse_constant), schema)
    except ValueError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
