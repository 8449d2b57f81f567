"""The earlier runs that a configuration names: `latest` is the promoted one, the others must exist.

What `latest` stands for is decided when work on a run begins. The same command goes on with it,
also when another run is promoted meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.events import emit
from spark_rank.store.needed_runs import LATEST, UNDECIDED, note_latest, noted_latest
from spark_rank.store.pointer import promoted_run
from spark_rank.store.run_records import RunRecords

_FOLDER = "run_id="
_SHOWN = 8


def with_earlier_runs(config: Config, run: RunRecords) -> Config:
    """Return the configuration with `latest` replaced by a run, or None where there is none."""
    asking = [key for key, named in _named(config).items() if named == LATEST]
    if asking:
        latest = _latest(asking[0], config, run)
        if latest is None:
            text = (
                f"{', '.join(asking)}: no run was promoted in {config.store} when this one began: "
                "everybody is learned"
            )
            emit("nothing_promoted", text, keys=asking)
    found = _replaced(config, latest) if asking else config
    for key, named in _named(found).items():
        if named is not None and not _is_there(named, found.store, run):
            raise ConfigError(f"{key}: {_missing(named, key in asking, found.store, run)}")
    return found


def _named(config: Config) -> dict[str, str | None]:
    return {
        "previous": config.previous,
        "features.kept_from": config.features.kept_from,
        "input.dictionaries_from": config.input.dictionaries_from,
    }


def _replaced(config: Config, latest: str | None) -> Config:
    chosen = {key: latest if named == LATEST else named for key, named in _named(config).items()}
    return replace(
        config,
        previous=chosen["previous"],
        features=replace(config.features, kept_from=chosen["features.kept_from"]),
        input=replace(config.input, dictionaries_from=chosen["input.dictionaries_from"]),
    )


def _latest(key: str, config: Config, run: RunRecords) -> str | None:
    """Return what `latest` stands for in this run; it is decided once."""
    latest = noted_latest(run)
    if latest is not UNDECIDED:
        return latest
    promoted = promoted_run(run.files, config.store)
    if promoted == run.run_id:
        raise ConfigError(
            f"{key}: latest is this run itself, {promoted!r}: name the run that it goes on from, "
            "or give the new one a run_id of its own"
        )
    note_latest(run, promoted)
    return promoted


def _is_there(named: str, store: str, run: RunRecords) -> bool:
    """Tell whether a run exists; a folder may be of another store, and is not looked at."""
    return "/" in named or run.files.is_directory(RunRecords(run.files, store, named).root)


def _missing(named: str, was_latest: bool, store: str, run: RunRecords) -> str:
    """Return what to say of a run that is not there."""
    if was_latest:
        return (
            f"latest is run {named!r} for this run, and {store} has no such run any more: give a "
            "new run a run_id of its own"
        )
    names = run.files.names(run.files.qualified(f"{store.rstrip('/')}/runs"))
    others = [name.removeprefix(_FOLDER) for name in names if name.startswith(_FOLDER)]
    there = [name for name in others if name != run.run_id]
    more = f" and {len(there) - _SHOWN:,} more" if len(there) > _SHOWN else ""
    listed = f"there are {', '.join(there[-_SHOWN:])}{more}" if there else "there is no other run"
    return f"there is no run {named!r} in {store}: {listed}"
