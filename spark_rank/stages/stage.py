"""The definition of a stage: what it needs, the settings of its result, and its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.records.facts import Facts
from spark_rank.store.run import Run


@dataclass(frozen=True)
class StageResult:
    """The result of a stage: a closing line, rows per table, and facts for the manifest.

    `users` is how many users it processed, if it goes user by user.
    """

    message: str
    tables: dict[str, int] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    users: int | None = None


@dataclass(frozen=True)
class Stage:
    """A step from the raw files to the report.

    `settings` returns the part of the configuration that decides the result, `inputs` identifies
    what the stage reads from outside the run: both go into its fingerprint. A `view` only shows
    results of other stages, and is made again when they change. A stage with `follows_inputs` is
    made again when only its inputs have changed; `follows` names some of the inputs for which it
    does so. `validate` raises errors in the stage's section of the configuration before Spark
    starts. `inputs` and `check` run before any stage of the command; `check` raises an error if the
    stage cannot be made.
    """

    name: str
    run: Callable[[Config, SparkSession, Run], StageResult]
    settings: Callable[[Config], Any]
    needs: Callable[[Config], tuple[str, ...]] = lambda config: ()
    inputs: Callable[[Config, Run], Any] = lambda config, run: None
    check: Callable[[Config, Run], None] = lambda config, run: None
    validate: Callable[[Config], object] = lambda config: None
    view: bool = False
    follows_inputs: bool = False
    follows: tuple[str, ...] = ()
