"""What ``spark-rank plan`` does: looks into the store, reckons, prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.planning.machine import this_machine
from spark_rank.planning.offer import Offer, offered
from spark_rank.planning.plan import (
    Layout,
    Measured,
    Plan,
    driver_cores,
    expected_seconds,
    layout_of,
    make_plan,
)
from spark_rank.planning.rates import starting
from spark_rank.planning.rendering import as_json, as_text
from spark_rank.planning.sizes import Sizes, given, of_input, of_records, synthetic
from spark_rank.session.files import FileInfo, on_local_disk, store_files
from spark_rank.session.session import session_settings
from spark_rank.stages.runner import plain
from spark_rank.stages.stage import Stage
from spark_rank.store.catalogue import DAMAGED, FOREIGN, Catalogue, Records
from spark_rank.store.waves import plan_waves

# stages whose settings decide how long a stage takes, beside its own
_DECIDING = {
    "tune": ("features",), "train": ("features",), "ensemble": ("features",),
    "evaluate": ("train",), "rank": ("train",), "refit": ("features", "train"),
    "recommend": ("features", "train"),
}  # fmt: skip
# another factor than this was no undisturbed run of the same work
_CREDIBLE = 5.0
# so many runs are looked at for times of their own
_LATEST = 10


def show_plan(options: argparse.Namespace, config: Config, stages: Sequence[Stage]) -> None:
    """Print the plan of the pipeline's stages."""
    with store_files("spark_rank plan", config.store, config.spark) as files:
        plan = plan_of(options, config, stages, Catalogue(files, config.store))
    found = json.dumps(as_json(plan), indent=2) if options.format == "json" else as_text(plan)
    print(found, flush=True)


def plan_of(
    options: argparse.Namespace, config: Config, stages: Sequence[Stage], catalogue: Catalogue
) -> Plan:
    """Return the plan, from what the store knows of this run and of others."""
    runs = _records(catalogue, config.run_id)
    sizes = _sizes(options, config, runs.get(config.run_id, {}), catalogue)
    offer = offered(session_settings(config.spark, {}), this_machine())
    cores = options.cores or offer.cores
    if cores is None:
        raise ConfigError(
            "plan: the configuration does not say how many cores there are: give --cores N"
        )
    layout = _layout(config, cores, offer, sizes)
    measured = {
        stage.name: found
        for stage in stages
        if (found := _measured(stage, config, stages, runs, offer)) is not None
    }
    return make_plan(config, [stage.name for stage in stages], sizes, layout, offer, measured)


def _records(catalogue: Catalogue, own: str) -> dict[str, Records]:
    """Return the records of the run itself and of the latest others, the latest first."""
    states = catalogue.states()
    # damage of others is no matter; of the run itself it is told
    names = [s.run_id for s in states if s.state not in (DAMAGED, FOREIGN) or s.run_id == own]
    latest = [name for place, name in enumerate(names) if place < _LATEST or name == own]
    return {name: catalogue.run(name).records() for name in latest}


def _sizes(
    options: argparse.Namespace, config: Config, records: Records, catalogue: Catalogue
) -> Sizes:
    base = of_records(records, config.run_id)
    by_hand = (options.ratings, options.users, options.items)
    if base is None and config.input.path is None:
        base = synthetic(config.synthesize)
    if base is None and not (options.ratings and options.users):
        base = _of_input(config, catalogue)
    return base if base is not None and not any(by_hand) else given(base, *by_hand)


def _of_input(config: Config, catalogue: Catalogue) -> Sizes | None:
    assert config.input.path is not None
    found = _input_files(config.input.path, config, catalogue)
    size = sum(info.size for info in found)
    if not size:
        return None
    names = [info.path for info in found]
    usual = "parquet" if names[0].endswith(".parquet") else "csv"
    kind = usual if config.input.is_recognised else config.input.known_format
    return of_input(size, names, kind)


def _input_files(path: str, config: Config, catalogue: Catalogue) -> list[FileInfo]:
    """Return the input's files, which may lie elsewhere than a local store."""
    local = on_local_disk(config.store, config.spark)
    if local and not on_local_disk(path, config.spark):
        with store_files("spark_rank plan", path, config.spark) as files:
            return files.glob(path)
    return catalogue.files.glob(path)


def _layout(config: Config, cores: int, offer: Offer, sizes: Sizes) -> Layout:
    waves = plan_waves(sizes.users, config.prepare.buckets, config.users_per_wave, cores)
    return layout_of(config, cores, offer, len(waves))


def _measured(
    stage: Stage,
    config: Config,
    stages: Sequence[Stage],
    runs: Mapping[str, Records],
    offer: Offer,
) -> Measured | None:
    """Return the latest run that did the same to data of its own, and how long it took."""
    by_name = {other.name: other for other in stages}
    deciding = [by_name[name] for name in _DECIDING.get(stage.name, ()) if name in by_name]
    for run_id, records in runs.items():
        record = records.get(stage.name)
        if record is None or not all(_same(s, config, records) for s in (stage, *deciding)):
            continue
        factor = _factor(stage, config, records, record, offer)
        if factor is not None:
            return Measured(run_id, factor)
    return None


def _same(stage: Stage, config: Config, records: Records) -> bool:
    """Tell whether a run's stage did what this configuration asks for."""
    record = records.get(stage.name)
    if record is None or "previous" in record["facts"] or "skipped" in record["facts"]:
        return False
    settings = plain(stage.settings(config))
    if stage.name == "ingest":  # wherever it lies
        return bool(record["settings"].get("format") == settings["format"])
    return bool(record["settings"] == settings)


def _factor(
    stage: Stage, config: Config, records: Records, record: dict[str, Any], offer: Offer
) -> float | None:
    """Return the measured over the expected time; None where starting took most of it."""
    sizes = of_records(records, "")
    cores = int(record.get("spark", {}).get("parallelism", 0))
    if sizes is None or not cores:
        return None
    layout = _layout(config, cores, offer, sizes)
    drivers = driver_cores(cores, offer)
    start = starting(stage.name)
    expected = expected_seconds(stage.name, config, sizes, layout, drivers) - start
    factor = (record["seconds"] - start) / expected if expected > 0 else 0.0
    credible = 1 / _CREDIBLE <= factor <= _CREDIBLE
    return factor if expected >= start and credible else None
