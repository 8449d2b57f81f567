"""What ``spark-rank plan`` does: looks into the store, reckons, prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from spark_rank.config import Config
from spark_rank.errors import ConfigError, ContractError
from spark_rank.planning.offer import offered, this_machine
from spark_rank.planning.plan import Measured, Plan, layout_of, make_plan
from spark_rank.planning.rendering import as_json, as_text
from spark_rank.planning.sizes import Sizes, given, of_input, of_records, synthetic
from spark_rank.planning.times import measured_range
from spark_rank.records.facts import read_facts, was_skipped
from spark_rank.records.models import LearnedSince
from spark_rank.session.files import FileInfo, on_local_disk, store_files
from spark_rank.session.session import session_settings
from spark_rank.stages.runner import plain
from spark_rank.stages.stage import Stage
from spark_rank.store.catalogue import DAMAGED, FOREIGN, Catalogue, Records
from spark_rank.store.waves import plan_waves

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
    waves = plan_waves(sizes.users, config.prepare.buckets, config.users_per_wave, cores)
    done = [name for name, records in runs.items() if _same(stages, config, records)]
    measured = next(filter(None, (_measured(n, runs[n], sizes, cores) for n in done)), {})
    layout = layout_of(config, cores, offer, len(waves))
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
    names, size = [info.path for info in found], sum(info.size for info in found)
    if not size:
        return None
    usual = "parquet" if names[0].endswith(".parquet") else "csv"
    return of_input(size, names, usual if config.input.is_recognised else config.input.known_format)


def _input_files(path: str, config: Config, catalogue: Catalogue) -> list[FileInfo]:
    """Return the input's files, which may lie elsewhere than a local store."""
    local = on_local_disk(config.store, config.spark)
    if local and not on_local_disk(path, config.spark):
        with store_files("spark_rank plan", path, config.spark) as files:
            return files.glob(path)
    return catalogue.files.glob(path)


def _same(stages: Sequence[Stage], config: Config, records: Records) -> bool:
    """Tell whether a run has done all that this configuration asks for, to whatever data."""
    for stage in stages:
        record, settings = records.get(stage.name), plain(stage.settings(config))
        if record is None or was_skipped(record):
            return False
        done = record["settings"]
        if stage.name == "ingest":
            done, settings = done.get("format"), settings["format"]
        if stage.name not in ("synthesize", "report") and done != settings:
            return False
    return True


def _measured(run_id: str, records: Records, sizes: Sizes, cores: int) -> Mapping[str, Measured]:
    """Return what the stages of a run took, with as much more work for a core as there is now."""
    try:
        counted = of_records(records, run_id)
        kept = read_facts(LearnedSince, records["train"], run_id).previous is not None
    except ContractError:  # of another version
        return {}
    if counted is None or kept:
        return {}
    found = {}
    for stage, record in records.items():
        ratio = sizes.ratings / counted.ratings * int(record["spark"]["parallelism"]) / cores
        found[stage] = Measured(run_id, measured_range(record["seconds"], ratio))
    return found
