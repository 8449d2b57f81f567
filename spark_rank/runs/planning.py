"""``spark-rank plan``: read the store, estimate, print."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from spark_rank.config import Config
from spark_rank.errors import ConfigError, ContractError
from spark_rank.planning.offer import offered, this_machine
from spark_rank.planning.plan import Measured, Plan, layout_of, make_plan
from spark_rank.planning.rendering import as_json, as_text
from spark_rank.planning.sizes import Sizes, from_options, of_input, of_records, synthetic
from spark_rank.planning.times import measured_range
from spark_rank.records.facts import read_facts, was_skipped
from spark_rank.records.models import LearnedSince
from spark_rank.session.files import FileInfo, on_local_disk, store_files
from spark_rank.session.session import session_settings
from spark_rank.stages.runner import plain
from spark_rank.stages.stage import Stage
from spark_rank.store.catalogue import DAMAGED, FOREIGN, Catalogue, Records
from spark_rank.store.waves import plan_waves

# how many of the latest runs are searched for measured times
_LATEST = 10


def show_plan(options: argparse.Namespace, config: Config, stages: Sequence[Stage]) -> None:
    """Print the plan of the pipeline's stages."""
    with store_files("spark_rank plan", config.store, config.spark) as files:
        plan = plan_of(options, config, stages, Catalogue(files, config.store))
    text = json.dumps(as_json(plan), indent=2) if options.format == "json" else as_text(plan)
    print(text, flush=True)


def plan_of(
    options: argparse.Namespace, config: Config, stages: Sequence[Stage], catalogue: Catalogue
) -> Plan:
    """Return the plan, from the records of this run and of others in the store."""
    runs = _records(catalogue, config.run_id)
    sizes = _sizes(options, config, runs.get(config.run_id, {}), catalogue)
    offer = offered(session_settings(config.spark, {}), this_machine())
    cores = options.cores or offer.cores
    if cores is None:
        raise ConfigError(
            "plan: the configuration does not give the number of cores: give --cores N"
        )
    waves = plan_waves(sizes.users, config.prepare.buckets, config.users_per_wave, cores)
    with_same_settings = [name for name, records in runs.items() if _same(stages, config, records)]
    measured = next(
        filter(None, (_measured(n, runs[n], sizes, cores) for n in with_same_settings)), {}
    )
    layout = layout_of(config, cores, offer, len(waves))
    return make_plan(config, [stage.name for stage in stages], sizes, layout, offer, measured)


def _records(catalogue: Catalogue, run_id: str) -> dict[str, Records]:
    """Return the records of this run and of the latest others, the latest first."""
    states = catalogue.states()
    # damaged runs are left out; if this run is damaged, reading its records raises the error
    names = [s.run_id for s in states if s.state not in (DAMAGED, FOREIGN) or s.run_id == run_id]
    latest = [name for place, name in enumerate(names) if place < _LATEST or name == run_id]
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
    return base if base is not None and not any(by_hand) else from_options(base, *by_hand)


def _of_input(config: Config, catalogue: Catalogue) -> Sizes | None:
    settings = config.input
    paths = (settings.path, settings.validation_path, settings.test_path)
    files = [info for path in paths if path is not None
             for info in _input_files(path, config, catalogue)]  # fmt: skip
    names, size = [info.path for info in files], sum(info.size for info in files)
    if not size:
        return None
    format_name = "parquet" if names[0].endswith(".parquet") else "csv"
    return of_input(
        size, names, format_name if config.input.is_recognised else config.input.known_format
    )


def _input_files(path: str, config: Config, catalogue: Catalogue) -> list[FileInfo]:
    """Return the input files, which need not be on the file system of the store."""
    local = on_local_disk(config.store, config.spark)
    if local and not on_local_disk(path, config.spark):
        with store_files("spark_rank plan", path, config.spark) as files:
            return files.glob(path)
    return catalogue.files.glob(path)


def _same(stages: Sequence[Stage], config: Config, records: Records) -> bool:
    """Tell whether a run has finished the stages with this configuration, on any data."""
    for stage in stages:
        record, settings = records.get(stage.name), plain(stage.settings(config))
        if record is None or was_skipped(record):
            return False
        recorded = record["settings"]
        if stage.name == "ingest":
            recorded, settings = recorded.get("format"), settings["format"]
        if stage.name not in ("synthesize", "report") and recorded != settings:
            return False
    return True


def _measured(run_id: str, records: Records, sizes: Sizes, cores: int) -> Mapping[str, Measured]:
    """Return the times of a run's stages, scaled to the work per core of this run."""
    try:
        counted = of_records(records, run_id)
        incremental = read_facts(LearnedSince, records["train"], run_id).previous is not None
    except ContractError:  # the records are of another version
        return {}
    if counted is None or incremental:
        return {}
    measured = {}
    for stage, record in records.items():
        ratio = sizes.ratings / counted.ratings * int(record["spark"]["parallelism"]) / cores
        measured[stage] = Measured(run_id, measured_range(record["seconds"], ratio))
    return measured
