#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate_schema.py finds each kind of fault and nothing in what is right."""

import json
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
from validate_schema import faults, validate  # noqa: E402

SCHEMAS = FOLDER.parents[1] / "docs" / "schema"


class Validate(unittest.TestCase):
    def expect(self, value, schema, fault):
        self.assertEqual(list(faults(value, schema)), [fault] if fault else [])

    def test_types(self):
        self.expect(1.0, {"type": "integer"}, None)
        self.expect(1.5, {"type": "integer"}, "document: 1.5 is not of type integer")
        self.expect(True, {"type": "integer"}, "document: true is not of type integer")
        self.expect(True, {"type": "number"}, "document: true is not of type number")
        self.expect(None, {"type": ["number", "null"]}, None)
        self.expect("1", {"type": ["number", "null"]}, 'document: "1" is not of type number or null')

    def test_numbers(self):
        self.expect(0, {"minimum": 0, "maximum": 1}, None)
        self.expect(-1, {"minimum": 0}, "document: -1 is below 0")
        self.expect(2, {"maximum": 1}, "document: 2 is above 1")
        self.expect(float("nan"), {"type": "number"}, "document: nan is not finite")

    def test_objects(self):
        schema = {"required": ["a"], "properties": {"a": {"type": "string"}}, "additionalProperties": False}
        self.expect({"a": "x"}, schema, None)
        self.expect({}, schema, "document: 'a' is missing")
        self.expect({"a": 1}, schema, "document.a: 1 is not of type string")
        self.expect({"a": "x", "b": 1}, schema, "document: 'b' is not expected")
        self.expect({"b": 1}, {"additionalProperties": {"type": "string"}}, "document.b: 1 is not of type string")

    def test_arrays(self):
        schema = {"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}
        self.expect([1, 2], schema, None)
        self.expect([], schema, "document: 0 items, fewer than 1")
        self.expect([1, 2, 3], schema, "document: 3 items, more than 2")
        self.expect([1, "2"], schema, 'document[1]: "2" is not of type integer')

    def test_choices(self):
        self.expect("b", {"enum": ["a", "b"]}, None)
        self.expect("c", {"enum": ["a", "b"]}, "document: \"c\" is none of ['a', 'b']")
        self.expect(True, {"const": 1}, "document: true is not 1")
        self.expect("", {"minLength": 1}, "document: 0 characters, fewer than 1")
        schema = {"anyOf": [{"type": "null"}, {"type": "array"}]}
        self.expect(None, schema, None)
        self.assertIn("fits none of 2 ways", next(faults(1, schema)))

    def test_references(self):
        schema = {"$ref": "#/$defs/count", "$defs": {"count": {"type": "integer"}}}
        self.expect(1, schema, None)
        self.expect("x", schema, 'document: "x" is not of type integer')

    def test_an_unknown_keyword_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "unknown keywords .'pattern'."):
            validate("x", {"pattern": "x"})

    def test_not_json(self):
        for text, found in ((b'{"a": NaN}', "NaN is not JSON"), (b'"\xff"', "invalid start byte"), (b"{", "Expecting")):
            run = subprocess.run([sys.executable, FOLDER / "validate_schema.py", SCHEMAS / "heads.schema.json"],
                                 input=text, capture_output=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(found, run.stdout.decode())

    def test_every_schema_of_the_project_uses_known_words_only(self):
        for path in sorted(SCHEMAS.glob("*.json")):
            with self.subTest(path.name):
                self.walk(json.loads(path.read_text(encoding="utf-8")))

    def walk(self, schema):
        if schema in (True, False):
            return
        list(faults({}, {name: schema[name] for name in schema if name not in ("$ref", "anyOf")}, root=schema))
        for name in ("properties", "$defs"):
            for part in schema.get(name, {}).values():
                self.walk(part)
        for part in schema.get("anyOf", []):
            self.walk(part)
        for name in ("items", "additionalProperties"):
            self.walk(schema.get(name, True))


if __name__ == "__main__":
    unittest.main()
