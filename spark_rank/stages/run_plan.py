"""What a command does with a run: which stages are done, and which it makes.

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
# fingerprints by stage; None is one that nobody can know before the stage is made
Upstream = Mapping[str, str | None]


class Action(Enum):
    """What becomes of a stage."""

    KEEP = "keep"
    MAKE = "make"
    RENEW = "renew"


@dataclass(frozen=True)
class Asked:
    """A stage as the configuration asks for it; all values are as JSON gives them back."""

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
class Planned:
    """A stage and what becomes of it."""

    asked: Asked
    action: Action


@dataclass(frozen=True)
class Shelf:
    """A run as its records show it: its name, where it is, and a stage's record or None."""

    run_id: str
    root: str
    record: Callable[[str], Record | None]


def plan_stages(asked: Sequence[Asked], shelf: Shelf) -> list[Planned]:
    """Return what becomes of each stage; raise `ConfigError` if one contradicts its record."""
    planned: list[Planned] = []
    made: dict[str, str | None] = {}
    for one in asked:
        upstream = upstream_of(one, shelf, made)
        done = shelf.record(one.name)
        action = decide(one, done, upstream, shelf.run_id)
        kept = action is Action.KEEP and done is not None
        made[one.name] = done["fingerprint"] if kept and done else one.made_fingerprint(upstream)
        planned.append(Planned(one, action))
    return planned


def upstream_of(asked: Asked, shelf: Shelf, made: Upstream) -> dict[str, str | None]:
    """Return the fingerprints of what a stage needs: of this command's stages, else recorded."""
    found: dict[str, str | None] = {}
    for name in asked.needs:
        if name in made:
            found[name] = made[name]
            continue
        record = shelf.record(name)
        if record is None:
            raise ConfigError(
                f"stage '{asked.name}' needs '{name}', which run {shelf.run_id!r} in {shelf.root} "
                f"has not finished: run `spark-rank {name}` first, or `spark-rank pipeline` for all"
            )
        found[name] = record["fingerprint"]
    return found


def decide(asked: Asked, done: Record | None, upstream: Upstream, run_id: str) -> Action:
    """Return what becomes of a stage; raise `ConfigError` if it contradicts its record.

    An upstream fingerprint that is not known yet contradicts nothing: the stage is decided again
    when its turn comes.
    """
    if done is None:
        return Action.MAKE
    if _is_same(asked, done, upstream):
        return Action.KEEP
    only_inputs = (done["settings"], done["seed"]) == (
        asked.settings, asked.seed,
    ) and _same_upstream(done, upstream)  # fmt: skip
    # a stage that was skipped for lack of data has left nothing that a later run could contradict
    if asked.view or was_skipped(done) or (only_inputs and _follows(asked, done)):
        return Action.RENEW
    raise contradiction(asked, done, run_id)


def _follows(asked: Asked, done: Record) -> bool:
    """Tell whether a stage goes along with the inputs that have changed."""
    if asked.follows_inputs or not asked.follows:
        return asked.follows_inputs
    others = [
        {name: value for name, value in (inputs or {}).items() if name not in asked.follows}
        for inputs in (done["inputs"], asked.inputs)
    ]
    return others[0] == others[1]


def check_bystanders(planned: Sequence[Planned], others: Sequence[Asked], shelf: Shelf) -> None:
    """Refuse to make what a finished stage would have needed, but was made without.

    The run would hold, and its report would show, what its own later stages never used.
    """
    names = {one.asked.name for one in planned}
    made = {one.asked.name for one in planned if one.action is Action.MAKE}
    for other in others:
        needed = made.intersection(other.needs)
        done = shelf.record(other.name) if needed and other.name not in names else None
        if done is not None and not needed <= done["upstream"].keys():
            raise contradiction(other, done, shelf.run_id)


def contradiction(asked: Asked, done: Record, run_id: str) -> ConfigError:
    """Return the error that names what differs from the record of a finished stage."""
    return ConfigError(
        f"run {run_id!r} has finished '{asked.name}' with {_difference(asked, done)}: give the new "
        "run a name of its own with --set run_id=NAME, or go back to what it was"
    )


def _is_same(asked: Asked, done: Record, upstream: Upstream) -> bool:
    if None not in upstream.values():
        return bool(done["fingerprint"] == asked.fingerprint(upstream))
    parts = ("seed", "settings", "inputs")
    same = all(done[part] == getattr(asked, part) for part in parts)
    return same and _same_upstream(done, upstream)


def _same_upstream(done: Record, upstream: Upstream) -> bool:
    before = done["upstream"]
    return before.keys() == upstream.keys() and all(
        now in (None, before[name]) for name, now in upstream.items()
    )


def _difference(asked: Asked, done: Record) -> str:
    """Say what changed since the record: a setting, the seed, or what the stage read."""
    if done["seed"] != asked.seed:
        return f"seed {done['seed']}, not {asked.seed}"
    changed = _changed(done["settings"], asked.settings, "")
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
