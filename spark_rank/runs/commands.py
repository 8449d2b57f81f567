"""The subcommands of ``spark-rank runs``; each returns its result as values for JSON."""

from __future__ import annotations

import argparse
import dataclasses
from datetime import UTC, datetime
from typing import Any

from spark_rank.config import Config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.runs.comparison import compare
from spark_rank.runs.rendering import printed
from spark_rank.session.files import Files, store_files
from spark_rank.store import pruning
from spark_rank.store.catalogue import COMPLETE, Catalogue, in_order
from spark_rank.store.pointer import point_to
from spark_rank.store.verification import verify
from spark_rank.wording import count_of

Result = dict[str, Any]


def manage(options: argparse.Namespace, config: Config) -> None:
    """Run the subcommand and print its result."""
    with store_files("spark_rank runs", config.store, config.spark) as files:
        result = _ACTIONS[options.action](options, config, files)
    print(printed(options.action, result, getattr(options, "format", "text")), flush=True)
    if result.get("problems"):
        raise InputDataError(
            f"run {result['run_id']!r}: {count_of(len(result['problems']), 'problem')}, the first: "
            f"{result['problems'][0]['path']}: {result['problems'][0]['detail']}"
        )


def _list(options: argparse.Namespace, config: Config, files: Files) -> Result:
    states = Catalogue(files, config.store).states()
    runs = [{**dataclasses.asdict(s), "needs": None if s.needs is None else sorted(s.needs)}
            for s in states]  # fmt: skip
    return {"store": config.store, "runs": runs}


def _show(options: argparse.Namespace, config: Config, files: Files) -> Result:
    catalogue = Catalogue(files, config.store)
    run = catalogue.run(options.run or config.run_id)
    records = run.records()
    hidden = ("files", "settings", "inputs")
    stages = [
        {key: value for key, value in records[name].items() if key not in hidden}
        for name in in_order(records)
    ]
    state = catalogue.state(run.run_id)
    return {"run_id": run.run_id, "path": run.root, "state": state.state, "detail": state.detail,
            "stages": stages}  # fmt: skip


def _diff(options: argparse.Namespace, config: Config, files: Files) -> Result:
    catalogue = Catalogue(files, config.store)
    names = options.run, options.other
    first, second = (catalogue.run(name).records() for name in names)
    return {"first": options.run, "second": options.other, **compare(names, first, second)}


def _verify(options: argparse.Namespace, config: Config, files: Files) -> Result:
    run = Catalogue(files, config.store).run(options.run or config.run_id)
    findings = verify(run)
    return {"run_id": run.run_id, **dataclasses.asdict(findings)}


def _prune(options: argparse.Namespace, config: Config, files: Files) -> Result:
    if options.keep is None and options.older_than is None:
        raise ConfigError(
            "runs prune: choose the runs to delete with --keep N or --older-than DAYS"
        )
    catalogue = Catalogue(files, config.store)
    choices = pruning.choose(
        catalogue.states(), options.keep, options.older_than, datetime.now(UTC)
    )
    if options.yes:
        choices = [_deleted(catalogue, choice) if choice.goes else choice for choice in choices]
    return {"deleted": options.yes, "runs": [dataclasses.asdict(choice) for choice in choices]}


def _deleted(catalogue: Catalogue, choice: pruning.Choice) -> pruning.Choice:
    try:
        pruning.delete(catalogue.run(choice.run_id))
    except ConfigError as error:  # another process works on it, or it has links
        return dataclasses.replace(choice, goes=False, reason=str(error))
    return choice


def _promote(options: argparse.Namespace, config: Config, files: Files) -> Result:
    catalogue = Catalogue(files, config.store)
    run = catalogue.run(options.run or config.run_id)
    state = catalogue.state(run.run_id)
    if state.state != COMPLETE:
        raise ConfigError(
            f"run {run.run_id!r} is {state.state} ({state.detail}): only a complete run can be "
            "promoted: complete it with `spark-rank pipeline` and its configuration"
        )
    return {"run_id": run.run_id, "pointer": point_to(run, config.store)}


_ACTIONS = {
    "list": _list, "show": _show, "diff": _diff, "verify": _verify, "prune": _prune,
    "promote": _promote,
}  # fmt: skip
