"""Lineage files as rows, one a resource with what it depends on: a dbt `manifest.json`, and Dagster's asset graph.

Fields of a manifest are those of its schema (https://schemas.getdbt.com/dbt/manifest/v12.json), read as far as versions
7 to 12 share them. An asset graph is the answer of Dagster's GraphQL to `assetNodes`, of which all but keys may be left
out. Each row has `name`, `resource_type` and an id that begins with that type (`settings.input.LINEAGE`). Keep out:
compiled SQL, macros.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_KINDS = ("nodes", "sources", "exposures", "metrics", "semantic_models", "saved_queries")
_DIVIDER, _IN_PARTS = re.compile(r"[./]"), re.compile(r"[\d_-]")
_FIRST = ("name", "full_name", "resource_type", "description", "owner", "depends_on", "used_by", "tests")
_LEFT_OUT = frozenset({"test", "operation", "analysis", "unit_test", "sql_operation"})


def read_lineage(content: object) -> list[dict[str, Any]] | None:
    """Return the rows of the content of a JSON file; None if it is no lineage file."""
    if not isinstance(content, dict):
        return None
    if "/dbt/manifest/" in str(_mapping(content.get("metadata")).get("dbt_schema_version")):
        return list(_make_rows(_read_manifest(content)))
    nodes = _mapping(content.get("data", content)).get("assetNodes")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        return None
    resources = {f"asset.{_path_of(node.get('assetKey'))}": _read_asset(node) for node in nodes}
    return None if "asset." in resources else list(_make_rows(resources))


def _make_rows(resources: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row for each resource but tests, by id, with the names of what it depends on and of what uses it.

    Args:
        resources: by id, the columns of each; `depends_on` has ids.
    """
    short_names = shorten(one["name"] for one in resources.values())
    names = {own_id: short_names[one["name"]] for own_id, one in resources.items()}
    users: defaultdict[str, list[str]] = defaultdict(list)
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for own_id, one in resources.items():
        for parent in one["depends_on"]:
            (tests if one["resource_type"] == "test" else users)[parent].append(names[own_id])
    for own_id, one in sorted(resources.items()):
        row = dict.fromkeys(_FIRST) | one
        row |= {
            "name": names[own_id],
            "full_name": one["name"] if names[own_id] != one["name"] else None,
            "description": " ".join((one["description"] or "").split()),
            "depends_on": [names.get(parent) or parent.partition(".")[2] for parent in one["depends_on"]],
            "used_by": sorted(users[own_id]),
            "tests": sorted((*one.get("tests", ()), *tests[own_id])),
        }
        if one["resource_type"] not in _LEFT_OUT:
            yield {"id": own_id, **{name: value for name, value in row.items() if value}}


def _read_asset(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a node of the answer of Dagster's GraphQL."""
    return {
        "name": _path_of(node.get("assetKey")),
        "resource_type": "asset",
        "description": node.get("description"),
        "owner": [owner.get("email") or owner.get("team") for owner in node.get("owners") or ()],
        "depends_on": [f"asset.{path}" for path in sorted(map(_path_of, node.get("dependencyKeys") or ()))],
        "tests": [check["name"] for check in _mapping(node.get("assetChecksOrError")).get("checks") or ()],
        "group": node.get("groupName"),
        "kinds": node.get("kinds"),
    }


def _read_manifest(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns of the resources of a manifest of dbt by id."""
    found = {unique_id: one for kind in _KINDS for unique_id, one in (content.get(kind) or {}).items()}
    return {
        unique_id: {
            "name": _name_of(one),
            "resource_type": one.get("resource_type"),
            "description": one.get("description"),
            "owner": _owner_of(one),
            "depends_on": [parent for parent in _mapping(one.get("depends_on")).get("nodes") or () if parent in found],
            "columns": [_describe(column) for column in (one.get("columns") or {}).values()],
            "materialized": _mapping(one.get("config")).get("materialized"),
            "exposure_type": one.get("type"),
            "url": one.get("url"),
            "tags": one.get("tags"),
            "path": one.get("original_file_path"),
        }
        for unique_id, one in found.items()
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def shorten(names: Iterable[str]) -> dict[str, str]:
    """Return full name -> its last part, as texts write it; the full name if others end alike, or in a plain word."""
    parts = {name: _DIVIDER.split(name)[-1] for name in names}
    count = Counter(parts.values())
    return {name: part if count[part] == 1 and _IN_PARTS.search(part) else name for name, part in parts.items()}


def _path_of(key: object) -> str:
    """Return an asset's key as Dagster shows it, such as `mart/orders`; "" if it is none."""
    path = key.get("path") if isinstance(key, dict) else None
    return "/".join(map(str, path)) if isinstance(path, list) else ""


def _name_of(resource: Mapping[str, Any]) -> str:
    """Return the name of a resource; of a source with its schema, as `raw_shop.orders`."""
    name = str(resource.get("name") or "")
    return f"{resource['source_name']}.{name}" if resource.get("source_name") else name


def _owner_of(resource: Mapping[str, Any]) -> str:
    """Return who owns a resource: an exposure's owner, or `owner` in its `meta`."""
    owner = resource.get("owner") or (resource.get("meta") or {}).get("owner")
    owner = owner or ((resource.get("config") or {}).get("meta") or {}).get("owner")
    return str(owner.get("name") or owner.get("email") or "") if isinstance(owner, dict) else str(owner or "")


def _describe(column: Mapping[str, Any]) -> str:
    said = " ".join((column.get("description") or "").split())
    return f"{column.get('name')} ({said})" if said else str(column.get("name"))
