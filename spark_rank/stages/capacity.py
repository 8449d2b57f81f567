"""Says, before a stage begins, what the cluster has too little of for it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.events import emit
from spark_rank.planning.memory import demand
from spark_rank.planning.offer import SETTINGS, offered, this_machine
from spark_rank.planning.shortages import Shortage, idle_cores, shortages
from spark_rank.planning.sizes import Sizes, of_records, synthetic
from spark_rank.planning.times import PLANNED
from spark_rank.store.run import Run

# what was told already, by application and setting: a run of many stages says it once
_told: set[tuple[str, str]] = set()


def warn_if_too_small(stage: str, config: Config, run: Run) -> None:
    """Compare what the session has with what the stage needs; asks Spark for no job."""
    if stage not in PLANNED:
        return
    sizes = _known_sizes(config, run)
    if sizes is None:
        return
    application = str(run.spark.sparkContext.applicationId)
    for shortage in _shortages(stage, config, sizes, run.spark):
        if (application, shortage.setting) not in _told:
            _told.add((application, shortage.setting))
            emit("too_small", shortage.message, stage=stage, level="warning",
                 setting=shortage.setting)  # fmt: skip


def _known_sizes(config: Config, run: Run) -> Sizes | None:
    """Return what earlier stages have counted, or what will be generated."""
    records = {name: record for name in ("prepare", "ingest")
               if (record := run.record(name)) is not None}  # fmt: skip
    found = of_records(records, run.run_id)
    if found is None and config.input.path is None:
        return synthetic(config.synthesize)
    return found


def _shortages(stage: str, config: Config, sizes: Sizes, spark: SparkSession) -> list[Shortage]:
    settings = _settings(spark)
    offer = offered(settings, this_machine())
    cores = spark.sparkContext.defaultParallelism
    need = demand(stage, config, sizes, offer.tasks or 1, cores)
    found = shortages(need, offer, settings)
    if stage == "prepare":
        found += idle_cores(cores, config.prepare.buckets)
    return found


def _settings(spark: SparkSession) -> dict[str, str]:
    found = {name: spark.conf.get(name, None) for name in SETTINGS}
    settings = {name: value for name, value in found.items() if value is not None}
    # under spark-submit the driver's JVM ran before the configuration was read
    jvm: Any = spark._jvm
    settings["spark.driver.memory"] = (
        f"{getattr(jvm, 'java.lang.Runtime').getRuntime().maxMemory()}b"
    )
    return settings
