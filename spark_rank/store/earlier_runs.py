"""The earlier runs that a configuration names: `latest` is the promoted one; others must exist.

What `latest` means is decided when work on a run begins. Repeating the command uses the same run,
even if another run is promoted meanwhile.
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
                "every user is learned"
            )
            emit("nothing_promoted", text, keys=asking)
    resolved = _replaced(config, latest) if asking else config
    for key, named in _named(resolved).items():
        if named is not None and not _exists(named, resolved.store, run):
            raise ConfigError(f"{key}: {_missing(named, key in asking, resolved.store, run)}")
    return resolved


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
    """Return the run that `latest` means in this run; this is decided once."""
    latest = noted_latest(run)
    if latest is not UNDECIDED:
        return latest
    promoted = promoted_run(run.files, config.store)
    if promoted == run.run_id:
        raise ConfigError(
            f"{key}: latest is this run itself, {promoted!r}: name an earlier run, or give the new "
            "run a run_id of its own"
        )
    note_latest(run, promoted)
    return promoted


def _exists(named: str, store: str, run: RunRecords) -> bool:
    """Tell whether a run exists; a folder may belong to another store and is not checked."""
    return "/" in named or run.files.is_directory(RunRecords(run.files, store, named).root)


def _missing(named: str, was_latest: bool, store: str, run: RunRecords) -> str:
    """Return the message for a run that does not exist."""
    if was_latest:
        return (
            f"latest means run {named!r} in this run, and {store} has it no more: start a new run "
            "with a run_id of its own"
        )
    names = run.files.names(run.files.qualified(f"{store.rstrip('/')}/runs"))
    ids = [name.removeprefix(_FOLDER) for name in names if name.startswith(_FOLDER)]
    others = [run_id for run_id in ids if run_id != run.run_id]
    more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    listed = f"it has {', '.join(others[-_SHOWN:])}{more}" if others else "it has no other run"
    return f"there is no run {named!r} in {store}: {listed}"
