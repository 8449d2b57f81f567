"""What a stage is: what it needs, which settings decide its result, and the function itself."""

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
    """What a finished stage reports: rows per table, facts for the manifest, a closing line.

    `users` is how many it went over, where that is what it does.
    """

    message: str
    tables: dict[str, int] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    users: int | None = None


@dataclass(frozen=True)
class Stage:
    """A step from the raw files to the report.

    `settings` returns the part of the configuration that decides the stage's result, `inputs`
    what the stage reads from outside the run: both go into its fingerprint. A `view` only shows
    what other stages left: it is made anew when that has changed. A stage that `follows_inputs` is
    made anew when nothing but these has changed; of inputs by name, one that `follows` some of
    them. `validate` raises what is wrong with the stage's own section, before Spark starts.
    `inputs` and `check` are asked before any stage of the command has run; `check` raises what
    forbids a stage that is to be made.
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
