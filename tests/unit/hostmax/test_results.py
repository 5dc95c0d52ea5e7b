"""The types of the results say what the JSON Schema says: every key, its type, its choices, whether it may be null."""

from __future__ import annotations

import itertools
import json
import types
import typing

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import plan as planning
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import PLAN_KEYS

from hostmax.results import Plan, PlanPoint, Results

from ..plugins.plugin_utils.results_example import schema

SCALARS = {"string": {str}, "integer": {int}, "number": {float, int}, "boolean": {bool}, "null": {type(None)}}
# `number` is float to the type checker, which lets a whole number pass for one
OF_A_TYPE = {float: {float, int}}
SCHEMA = schema()


def said_by_schema(node):
    """(the scalar types and choices, the object and array schemas) that a schema allows."""
    if "$ref" in node:
        return said_by_schema(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    if "oneOf" in node:
        scalars, structures = zip(*map(said_by_schema, node["oneOf"]))
        return [*itertools.chain(*scalars)], [*itertools.chain(*structures)]
    if "enum" in node or "const" in node:
        return node.get("enum", [node.get("const")]), []
    names = [node["type"]] if isinstance(node["type"], str) else node["type"]
    scalars = [kind for name in names for kind in SCALARS.get(name, ())]
    return scalars, [node for name in names if name in ("object", "array")]


def differences(hint, node, where):
    """Where a type and a schema do not say the same, as texts."""
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    arms = typing.get_args(hint) if union else (hint,)
    scalars, objects = [], []
    for arm in arms:
        if typing.get_origin(arm) is typing.Literal:
            scalars += typing.get_args(arm)
        elif arm is type(None):
            scalars.append(None)
        elif arm in (str, int, float, bool):
            scalars += OF_A_TYPE.get(arm, {arm})
        else:
            objects.append(arm)
    wanted, structures = said_by_schema(node)
    nullable = {None if each is type(None) else each for each in wanted}
    if set(scalars) != nullable:
        yield f"{where}: {sorted(map(str, scalars))} in the type, {sorted(map(str, nullable))} in the schema"
    if len(objects) != len(structures):
        yield f"{where}: {objects} in the type, {len(structures)} structures in the schema"
    for each, structure in zip(objects, structures):
        yield from inside(each, structure, where)


def inside(hint, node, where):
    if node["type"] == "array":
        yield from differences(*typing.get_args(hint), node["items"], f"{where}[]")
    elif typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        if set(hints) != set(node["properties"]):
            yield f"{where}: the keys differ in {set(hints) ^ set(node['properties'])}"
        if hint.__required_keys__ != set(node["required"]):
            yield f"{where}: required are {hint.__required_keys__ ^ set(node['required'])} in one of them only"
        for key in set(hints) & set(node["properties"]):
            yield from differences(hints[key], node["properties"][key], f"{where}.{key}")
    else:
        _key, value = typing.get_args(hint)
        if typing.get_origin(hint) is not dict:
            yield f"{where}: {hint} in the type, a mapping in the schema"
        elif value is not typing.Any or "additionalProperties" in node:
            yield from differences(value, node["additionalProperties"], f"{where}{{}}")


def test_the_types_say_what_the_schema_says():
    assert list(inside(Results, SCHEMA, "results")) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: s["$defs"]["point"]["properties"].pop("limit"), "points[]: the keys differ in"),
        (lambda s: s["$defs"]["host"]["properties"]["cpus"].update(type="integer"), "hosts[].cpus: "),
        (lambda s: s["properties"]["run"]["properties"]["status"]["enum"].append("late"), "run.status: "),
        (lambda s: s["$defs"]["series"]["properties"]["iops"]["items"].update(type="string"), "points[].series.iops[]"),
    ],
)
def test_a_difference_between_type_and_schema_is_found(monkeypatch, change, told):
    changed = json.loads(json.dumps(SCHEMA))
    change(changed)
    monkeypatch.setitem(globals(), "SCHEMA", changed)
    assert any(told in text for text in inside(Results, changed, "results")), told


def test_a_plan_has_the_keys_of_its_type():
    assert set(typing.get_type_hints(Plan)) == {"schema", *PLAN_KEYS}
    assert "_point" in vars(planning)
    assert {"id", "jobs", "targets", "workload"} <= set(typing.get_type_hints(PlanPoint))
