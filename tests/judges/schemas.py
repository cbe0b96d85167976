"""The JSON schemas of docs/schema, to check values against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


def assert_valid(value: Any) -> None:  # noqa: ANN401 - whatever json.dumps takes
    """Check a value against the schema that it names, after a trip through JSON text."""
    value = json.loads(json.dumps(value))
    program, name, version = value["schema"].split("/")
    assert program == "wheelslim"
    schema = json.loads((SCHEMAS / f"{name}-{version}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == value["schema"]
    Draft202012Validator(schema).validate(value)
