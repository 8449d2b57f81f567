"""The plan of a command: which stages are done, and which ones it makes.

Everything is decided before the first stage writes, so that a command that contradicts a finished
stage changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_rank.errors import ConfigError
from spark_rank.records.facts import was_skipped

Record = Mapping[str, Any]
# fingerprints by stage; None if the fingerprint is not known before the stage is made
Upstream = Mapping[str, str | None]


class Action(Enum):
    """Whether a stage is kept, made, or made again in place of its old result."""

    KEEP = "keep"
    MAKE = "make"
    RENEW = "renew"


@dataclass(frozen=True)
class StageRequest:
    """A stage as the configuration asks for it; all values are in the form that JSON returns."""

    name: str
    seed: int
    settings: Any
    inputs: Any
    needs: tuple[str, ...] = ()
    view: bool = False
    follows_inputs: bool = False
    follows: tuple[str, ...] = ()

    def fingerprint(self, upstream: Upstream) -> str:
        """Return what identifies the stage's result."""
        parts = [self.name, self.seed, self.settings, self.inputs, upstream]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def made_fingerprint(self, upstream: Upstream) -> str | None:
        """Return the fingerprint that the stage will have; None if earlier stages may change it."""
        follows = self.follows_inputs or self.follows
        if self.view or follows or None in upstream.values():
            return None
        return self.fingerprint(upstream)


@dataclass(frozen=True)
class PlannedStage:
    """A stage, and whether it is kept, made or renewed."""

    request: StageRequest
    action: Action


@dataclass(frozen=True)
class RecordedRun:
    """A run by its records: its id, its path, and a function from a stage to its record or None."""

    run_id: str
    root: str
    record: Callable[[str], Record | None]


def plan_stages(requests: Sequence[StageRequest], run: RecordedRun) -> list[PlannedStage]:
    """Return the action for each stage; raise `ConfigError` if one contradicts its record."""
    planned: list[PlannedStage] = []
    fingerprints: dict[str, str | None] = {}
    for one in requests:
        upstream = upstream_of(one, run, fingerprints)
        record = run.record(one.name)
        action = decide(one, record, upstream, run.run_id)
        kept = action is Action.KEEP and record is not None
        fingerprints[one.name] = (
            record["fingerprint"] if kept and record else one.made_fingerprint(upstream)
        )
        planned.append(PlannedStage(one, action))
    return planned


def upstream_of(
    request: StageRequest, run: RecordedRun, fingerprints: Upstream
) -> dict[str, str | None]:
    """Return the fingerprints of the stages that a stage needs: in this command, else recorded."""
    upstream: dict[str, str | None] = {}
    for name in request.needs:
        if name in fingerprints:
            upstream[name] = fingerprints[name]
            continue
        record = run.record(name)
        if record is None:
            raise ConfigError(
                f"stage '{request.name}' needs '{name}', which run {run.run_id!r} in {run.root} "
                f"has not finished: run `spark-rank {name}` first, or `spark-rank pipeline` for all"
            )
        upstream[name] = record["fingerprint"]
    return upstream


def decide(request: StageRequest, record: Record | None, upstream: Upstream, run_id: str) -> Action:
    """Return the action for a stage; raise `ConfigError` if it contradicts its record.

    An upstream fingerprint that is not known yet contradicts nothing: the stage is decided again
    when its turn comes.
    """
    if record is None:
        return Action.MAKE
    if _is_same(request, record, upstream):
        return Action.KEEP
    only_inputs = (record["settings"], record["seed"]) == (
        request.settings, request.seed,
    ) and _same_upstream(record, upstream)  # fmt: skip
    # a skipped stage has no result that a later command could contradict
    if request.view or was_skipped(record) or (only_inputs and _follows(request, record)):
        return Action.RENEW
    raise contradiction(request, record, run_id)


def _follows(request: StageRequest, record: Record) -> bool:
    """Tell whether a stage is made again because its inputs have changed."""
    if request.follows_inputs or not request.follows:
        return request.follows_inputs
    others = [
        {name: value for name, value in (inputs or {}).items() if name not in request.follows}
        for inputs in (record["inputs"], request.inputs)
    ]
    return others[0] == others[1]


def check_later_stages(
    planned: Sequence[PlannedStage], others: Sequence[StageRequest], run: RecordedRun
) -> None:
    """Raise `ConfigError` if a finished stage was made without a stage that is to be made now.

    Otherwise the report would show results that the later stages of the run never used.
    """
    names = {one.request.name for one in planned}
    made = {one.request.name for one in planned if one.action is Action.MAKE}
    for other in others:
        needed = made.intersection(other.needs)
        record = run.record(other.name) if needed and other.name not in names else None
        if record is not None and not needed <= record["upstream"].keys():
            raise contradiction(other, record, run.run_id)


def contradiction(request: StageRequest, record: Record, run_id: str) -> ConfigError:
    """Return the error that names what differs from the record of a finished stage."""
    return ConfigError(
        f"run {run_id!r} has finished '{request.name}' with {_difference(request, record)}: start "
        "a new run with --set run_id=NAME, or go back to the old values"
    )


def _is_same(request: StageRequest, record: Record, upstream: Upstream) -> bool:
    if None not in upstream.values():
        return bool(record["fingerprint"] == request.fingerprint(upstream))
    parts = ("seed", "settings", "inputs")
    same = all(record[part] == getattr(request, part) for part in parts)
    return same and _same_upstream(record, upstream)


def _same_upstream(record: Record, upstream: Upstream) -> bool:
    recorded = record["upstream"]
    return recorded.keys() == upstream.keys() and all(
        now in (None, recorded[name]) for name, now in upstream.items()
    )


def _difference(request: StageRequest, record: Record) -> str:
    """Return in words what changed since the record: a setting, the seed, or the input."""
    if record["seed"] != request.seed:
        return f"seed {record['seed']}, not {request.seed}"
    changed = _changed(record["settings"], request.settings, "")
    if changed:
        return "other settings (" + "; ".join(changed[:3]) + ")"
    return "other input"


def _changed(old: Any, new: Any, key: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        return [
            line
            for name in names
            for line in _changed(old.get(name), new.get(name), f"{key}.{name}".lstrip("."))
        ]
    return [] if old == new else [f"{key} was {json.dumps(old)}, is {json.dumps(new)}"]
