"""The output of ``spark-rank runs``, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_rank.wording import count_of

Result = dict[str, Any]

_UNITS = ("B", "kB", "MB", "GB", "TB")


def printed(action: str, result: Result, output_format: str) -> str:
    """Return a result as text or JSON."""
    if output_format == "json":
        return json.dumps(result, indent=2)
    return "\n".join(line.rstrip() for line in _TEXTS[action](result))


def _list(result: Result) -> list[str]:
    if not result["runs"]:
        return [f"no runs in {result['store']}"]
    rows = [("run", "state", "started", "stages", "users", "size", "")]
    for run in result["runs"]:
        rows.append((
            run["run_id"] + (" *" if run["promoted"] else ""), run["state"], run["started"] or "-",
            str(len(run["stages"])), _number(run["users"]), _bytes(run["size"]), run["detail"],
        ))  # fmt: skip
    promoted = any(run["promoted"] for run in result["runs"])
    return [*columns(rows), *(["* promoted"] if promoted else [])]


def _show(result: Result) -> list[str]:
    detail = f" ({result['detail']})" if result["detail"] else ""
    lines = [f"{result['run_id']}: {result['state']}{detail}", result["path"], ""]
    rows = [("stage", "started", "seconds", "what")]
    for stage in result["stages"]:
        rows.append((stage["stage"], stage["started"], f"{stage['seconds']:,.1f}",
                     stage["message"]))  # fmt: skip
    lines += [*columns(rows), ""]
    tables = {name: n for stage in result["stages"] for name, n in stage["tables"].items()}
    return lines + columns([("table", "rows"), *((name, _number(n)) for name, n in tables.items())])


def _diff(result: Result) -> list[str]:
    lines: list[str] = []
    titles = {"settings": "settings that differ", "versions": "versions that differ",
              "rows": "rows", "means": "means (of so many users)"}  # fmt: skip
    for key, title in titles.items():
        if result[key]:
            rows = [(title, result["first"], result["second"])]
            rows += [(row["name"], _side(row, "first"), _side(row, "second"))
                     for row in result[key]]  # fmt: skip
            lines += [*columns(rows), ""]
    return lines


def _verify(result: Result) -> list[str]:
    counts = f"{count_of(result['files'], 'file')}, {count_of(result['tables'], 'table')}"
    if not result["problems"]:
        return [f"{result['run_id']}: {counts}: all as the manifest says"]
    rows = [(p["kind"], p["path"], p["detail"]) for p in result["problems"]]
    return [f"{result['run_id']}: {counts}, {count_of(len(rows), 'problem')}", *columns(rows)]


def _prune(result: Result) -> list[str]:
    word = "deleted" if result["deleted"] else "would be deleted"
    rows = [(run["run_id"], word if run["goes"] else "kept", _bytes(run["size"]), run["reason"])
            for run in result["runs"]]  # fmt: skip
    hint = [] if result["deleted"] or not any(r["goes"] for r in result["runs"]) else [
        "nothing is deleted yet: add --yes to delete"]  # fmt: skip
    return [*columns(rows), *hint]


def _promote(result: Result) -> list[str]:
    return [f"{result['pointer']} names {result['run_id']}"]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line per row, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows]  # fmt: skip


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _side(row: Result, side: str) -> str:
    """Return a run's value; a mean with its number of users, or the reason if there is none."""
    if reason := row.get(f"{side}_nothing_because"):
        return f"- {reason}"
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
