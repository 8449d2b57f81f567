"""Warns before a stage begins if the cluster has too few resources for it."""

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

# warnings already given, by application and setting: a run gives each of them once
_warned: set[tuple[str, str]] = set()


def warn_if_too_small(stage: str, config: Config, run: Run) -> None:
    """Compare the session's resources with the stage's needs, without a Spark job."""
    if stage not in PLANNED:
        return
    sizes = _known_sizes(config, run)
    if sizes is None:
        return
    application = str(run.spark.sparkContext.applicationId)
    for shortage in _shortages(stage, config, sizes, run.spark):
        if (application, shortage.setting) not in _warned:
            _warned.add((application, shortage.setting))
            emit("too_small", shortage.message, stage=stage, level="warning",
                 setting=shortage.setting)  # fmt: skip


def _known_sizes(config: Config, run: Run) -> Sizes | None:
    """Return the sizes that earlier stages have counted, or those of the data set to generate."""
    records = {name: record for name in ("prepare", "ingest")
               if (record := run.record(name)) is not None}  # fmt: skip
    sizes = of_records(records, run.run_id)
    if sizes is None and config.input.path is None:
        return synthetic(config.synthesize)
    return sizes


def _shortages(stage: str, config: Config, sizes: Sizes, spark: SparkSession) -> list[Shortage]:
    settings = _settings(spark)
    offer = offered(settings, this_machine())
    cores = spark.sparkContext.defaultParallelism
    need = demand(stage, config, sizes, offer.tasks or 1, cores)
    missing = shortages(need, offer, settings)
    if stage == "prepare":
        missing += idle_cores(cores, config.prepare.buckets)
    return missing


def _settings(spark: SparkSession) -> dict[str, str]:
    values = {name: spark.conf.get(name, None) for name in SETTINGS}
    settings = {name: value for name, value in values.items() if value is not None}
    # under spark-submit, the driver's JVM starts before the configuration is read
    jvm: Any = spark._jvm
    settings["spark.driver.memory"] = (
        f"{getattr(jvm, 'java.lang.Runtime').getRuntime().maxMemory()}b"
    )
    return settings
