"""What help says of a stage's keys is what the stage reads: every read is noted, in a real run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.help.keys import stages_that_read
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stages
from spark_rank.stages.stage import Stage
from spark_rank.store.run import Run

Reads = dict[str, set[str]]
# the number of features, which only says which users take long and are begun with
WIDTH = {f"features.{name}" for name in ("rank", "panel_size", "reference_size")}


@contextmanager
def noted(stage: str, reads: Reads) -> Iterator[None]:
    """Note the keys that anything reads from a configuration of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for entry in dataclasses.fields(Config):
            if dataclasses.is_dataclass(entry.default):
                note_of(
                    type(entry.default), f"{entry.name}.", reads.setdefault(stage, set()), patch
                )
        note_of(Config, "", reads.setdefault(stage, set()), patch)
        yield


def note_of(kind: type, prefix: str, keys: set[str], patch: pytest.MonkeyPatch) -> None:
    plain = {entry.name for entry in dataclasses.fields(kind)}
    sections = {entry.name for entry in dataclasses.fields(Config)} if not prefix else set()
    sections -= {"store", "run_id", "previous", "seed", "users_per_wave", "spark"}

    def read(self: Any, name: str) -> Any:
        if name in plain - sections:
            keys.add(prefix + name)
        return object.__getattribute__(self, name)

    patch.setattr(kind, "__getattribute__", read)


def noting(stage: Stage, reads: Reads) -> Stage:
    def own(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            with noted(stage.name, reads):
                return function(*arguments)

        return call

    names = ("run", "settings", "needs", "inputs", "check")
    return dataclasses.replace(stage, **{name: own(getattr(stage, name)) for name in names})


@pytest.mark.slow
def test_help_names_every_key_that_a_stage_reads(
    spark: SparkSession, make_config: Callable[..., Config]
) -> None:
    config = make_config(
        "train.learners=[{learner: mprank, grid: {C: [0.1, 1]}}]", "tune.users=20",
        "recommend.in_pipeline=true", "predictions.in_pipeline=true", "ensemble.in_pipeline=true",
    )  # fmt: skip
    reads: Reads = {}
    stages = [noting(stage, reads) for stage in pipeline(config)]
    run_stages(stages, config, spark, Run(spark, config.store, config.run_id))
    missing = {
        (stage, key)
        for stage, keys in reads.items()
        for key in keys
        if stage not in stages_that_read(key) and (stage, key) not in product(["train"], WIDTH)
    }
    assert missing == set()
    assert "train.min_ratings" in reads["train"]
