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
from typing import Any, TypeGuard

_KINDS = ("nodes", "sources", "exposures", "metrics", "semantic_models", "saved_queries")
_DIVIDER, _IN_PARTS = re.compile(r"[./]"), re.compile(r"[\d_-]")
_LEFT_OUT = frozenset({"test", "operation", "analysis", "unit_test", "sql_operation"})


def read_lineage(content: object) -> list[dict[str, Any]] | None:
    """Return the rows of the content of a JSON file; None if it is no lineage file."""
    if is_manifest(content):
        return list(read_manifest(content))
    answer = content.get("data", content) if isinstance(content, dict) else None
    nodes = answer.get("assetNodes") if isinstance(answer, dict) else None
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        return None
    by_key = {_path_of(node.get("assetKey")): node for node in nodes}
    return None if "" in by_key else list(_read_assets(by_key))


def _read_assets(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row for each asset; `nodes` are by key."""
    names = shorten(nodes)
    parents: dict[str, list[str]] = {}
    users: defaultdict[str, list[str]] = defaultdict(list)
    for key, node in nodes.items():
        above = [_path_of(one) for one in node.get("dependencyKeys") or ()]
        parents[key] = sorted(names.get(one, one) for one in above)
        for one in above:
            users[one].append(names[key])
    for key, node in sorted(nodes.items()):
        checks = (node.get("assetChecksOrError") or {}).get("checks") or ()
        row = {
            "name": names[key],
            "full_name": key if key != names[key] else None,
            "resource_type": "asset",
            "description": " ".join((node.get("description") or "").split()),
            "owner": [owner.get("email") or owner.get("team") for owner in node.get("owners") or ()],
            "depends_on": parents[key],
            "used_by": sorted(users[key]),
            "tests": sorted(check["name"] for check in checks),
            "group": node.get("groupName"),
            "kinds": node.get("kinds"),
        }
        yield {"id": f"asset.{key}", **{name: value for name, value in row.items() if value}}


def shorten(names: Iterable[str]) -> dict[str, str]:
    """Return full name -> its last part, as texts write it; the full name if others end alike, or in a plain word."""
    parts = {name: _DIVIDER.split(name)[-1] for name in names}
    count = Counter(parts.values())
    return {name: part if count[part] == 1 and _IN_PARTS.search(part) else name for name, part in parts.items()}


def _path_of(key: object) -> str:
    """Return an asset's key as Dagster shows it, such as `mart/orders`; "" if it is none."""
    path = key.get("path") if isinstance(key, dict) else None
    return "/".join(map(str, path)) if isinstance(path, list) else ""


def is_manifest(content: object) -> TypeGuard[dict[str, Any]]:
    """Whether the content of a JSON file is a manifest of dbt."""
    metadata = content.get("metadata") if isinstance(content, dict) else None
    return isinstance(metadata, dict) and "/dbt/manifest/" in str(metadata.get("dbt_schema_version"))


def read_manifest(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row for each resource but tests, with the names of what it depends on and of what uses it."""
    resources = {unique_id: one for kind in _KINDS for unique_id, one in (content.get(kind) or {}).items()}
    full_names = {unique_id: _name_of(one) for unique_id, one in resources.items()}
    short_names = shorten(full_names.values())
    names = {unique_id: short_names[name] for unique_id, name in full_names.items()}
    users: defaultdict[str, list[str]] = defaultdict(list)
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for unique_id, one in resources.items():
        for other in _parents_of(one):
            (tests if one.get("resource_type") == "test" else users)[other].append(names[unique_id])
    for unique_id, one in sorted(resources.items()):
        if one.get("resource_type") in _LEFT_OUT:
            continue
        row = {
            "name": names[unique_id],
            "full_name": full_names[unique_id] if names[unique_id] != full_names[unique_id] else None,
            "resource_type": one.get("resource_type"),
            "description": " ".join((one.get("description") or "").split()),
            "owner": _owner_of(one),
            "depends_on": [names[other] for other in _parents_of(one) if other in names],
            "used_by": sorted(users[unique_id]),
            "tests": sorted(tests[unique_id]),
            "columns": [_describe(column) for column in (one.get("columns") or {}).values()],
            "materialized": (one.get("config") or {}).get("materialized"),
            "exposure_type": one.get("type"),
            "url": one.get("url"),
            "tags": one.get("tags"),
            "path": one.get("original_file_path"),
        }
        yield {"id": unique_id, **{key: value for key, value in row.items() if value}}


def _name_of(resource: Mapping[str, Any]) -> str:
    """Return the name of a resource; of a source with its schema, as `raw_shop.orders`."""
    name = str(resource.get("name") or "")
    return f"{resource['source_name']}.{name}" if resource.get("source_name") else name


def _parents_of(resource: Mapping[str, Any]) -> list[str]:
    depends = resource.get("depends_on")
    return list(depends.get("nodes") or ()) if isinstance(depends, dict) else []


def _owner_of(resource: Mapping[str, Any]) -> str:
    """Return who owns a resource: an exposure's owner, or `owner` in its `meta`."""
    owner = resource.get("owner") or (resource.get("meta") or {}).get("owner")
    owner = owner or ((resource.get("config") or {}).get("meta") or {}).get("owner")
    return str(owner.get("name") or owner.get("email") or "") if isinstance(owner, dict) else str(owner or "")


def _describe(column: Mapping[str, Any]) -> str:
    said = " ".join((column.get("description") or "").split())
    return f"{column.get('name')} ({said})" if said else str(column.get("name"))
