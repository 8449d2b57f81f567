"""What ``spark-rank runs`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_rank.wording import count_of

Found = dict[str, Any]

_UNITS = ("B", "kB", "MB", "GB", "TB")


def printed(action: str, found: Found, how: str) -> str:
    """Return the findings as text or JSON."""
    if how == "json":
        return json.dumps(found, indent=2)
    return "\n".join(line.rstrip() for line in _TEXTS[action](found))


def _list(found: Found) -> list[str]:
    if not found["runs"]:
        return [f"no runs in {found['store']}"]
    rows = [("run", "state", "started", "stages", "users", "size", "")]
    for run in found["runs"]:
        rows.append((
            run["run_id"] + (" *" if run["promoted"] else ""), run["state"], run["started"] or "-",
            str(len(run["stages"])), _number(run["users"]), _bytes(run["size"]), run["detail"],
        ))  # fmt: skip
    promoted = any(run["promoted"] for run in found["runs"])
    return [*columns(rows), *(["* promoted"] if promoted else [])]


def _show(found: Found) -> list[str]:
    detail = f" ({found['detail']})" if found["detail"] else ""
    lines = [f"{found['run_id']}: {found['state']}{detail}", found["path"], ""]
    rows = [("stage", "started", "seconds", "what")]
    for stage in found["stages"]:
        rows.append((stage["stage"], stage["started"], f"{stage['seconds']:,.1f}",
                     stage["message"]))  # fmt: skip
    lines += [*columns(rows), ""]
    tables = {name: n for stage in found["stages"] for name, n in stage["tables"].items()}
    return lines + columns([("table", "rows"), *((name, _number(n)) for name, n in tables.items())])


def _diff(found: Found) -> list[str]:
    lines: list[str] = []
    titles = {"settings": "settings that differ", "versions": "versions that differ",
              "rows": "rows", "means": "means (of so many users)"}  # fmt: skip
    for key, title in titles.items():
        if found[key]:
            rows = [(title, found["first"], found["second"])]
            rows += [(row["name"], _side(row, "first"), _side(row, "second"))
                     for row in found[key]]  # fmt: skip
            lines += [*columns(rows), ""]
    return lines


def _verify(found: Found) -> list[str]:
    looked = f"{count_of(found['files'], 'file')}, {count_of(found['tables'], 'table')}"
    if not found["problems"]:
        return [f"{found['run_id']}: {looked}: all as the manifest says"]
    rows = [(p["kind"], p["path"], p["detail"]) for p in found["problems"]]
    return [f"{found['run_id']}: {looked}, {count_of(len(rows), 'problem')}", *columns(rows)]


def _prune(found: Found) -> list[str]:
    word = "deleted" if found["deleted"] else "would go"
    rows = [(run["run_id"], word if run["goes"] else "stays", _bytes(run["size"]), run["reason"])
            for run in found["runs"]]  # fmt: skip
    hint = [] if found["deleted"] or not any(r["goes"] for r in found["runs"]) else [
        "nothing is deleted yet: add --yes"]  # fmt: skip
    return [*columns(rows), *hint]


def _promote(found: Found) -> list[str]:
    return [f"{found['pointer']} names {found['run_id']}"]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line per row, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows]  # fmt: skip


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _side(row: Found, side: str) -> str:
    """Return a run's value; a mean with the number of its users, or why it says nothing."""
    if nothing := row.get(f"{side}_nothing_because"):
        return f"- {nothing}"
    users = row.get(f"{side}_users")
    return _value(row[side]) + (f" ({users:,})" if users else "")


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


_TEXTS = {
    "list": _list, "show": _show, "diff": _diff, "verify": _verify, "prune": _prune,
    "promote": _promote,
}  # fmt: skip
