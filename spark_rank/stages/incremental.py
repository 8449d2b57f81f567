"""Models that a run keeps from a previous one: those of users without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.reader.recorded import is_refitted
from spark_rank.records.features import FeatureFacts
from spark_rank.records.models import JobFacts, PreviousModels, TrainFacts
from spark_rank.stages.final_run import FinalRun
from spark_rank.stages.runner import plain, versions
from spark_rank.stages.training import target_blocks
from spark_rank.store.run import Run
from spark_rank.tables.contract import VERSION_COLUMN
from spark_rank.tables.contracts import BLOCKS, CHANGES, ITEMS, MODELS, USERS
from spark_rank.users.learning import LearnJob
from spark_rank.wording import count_of

NEW, CHANGED, VANISHED = "new", "changed", "vanished"
USER, ITEM = "user", "item"
# packages that may change the numbers of a learner
_PACKAGES = ("spark_rank", "numpy", "scipy", "numba")

Record = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The previous run, and the users (`user_id`) to learn again; None: all users."""

    previous: Run
    relearned: DataFrame | None
    facts: PreviousModels

    def models(self, blocks: DataFrame, buckets: Sequence[int]) -> DataFrame | None:
        """Return the previous models of the users in `blocks` that are not learned again."""
        if self.relearned is None:
            return None
        users = blocks.select("user_id", "bucket").join(self.relearned, "user_id", "left_anti")
        models = self.previous.read_files(MODELS, self._files(buckets))
        # the previous run may have another number of buckets
        return models.drop("bucket").join(users, "user_id").select(*_names(MODELS))

    def to_learn(self, blocks: DataFrame) -> DataFrame:
        """Return the blocks to learn; the join is a broadcast, so that each file stays a task."""
        if self.relearned is None:
            return blocks
        return blocks.join(F.broadcast(self.relearned), "user_id", "left_semi")

    def in_words(self, users: int) -> str:
        """Return what has changed and what is kept, in words; `users` is how many have models."""
        counts = ", ".join(_change(n, name) for name, n in self.facts.changes.items() if n)
        because = self.facts.all_learned_because
        what = f"all users learned: {because}"
        if because is None:
            moved = self.facts.changes
            kept = users - moved[f"{USER}s {NEW}"] - moved[f"{USER}s {CHANGED}"]
            what = f"the models of {count_of(kept, 'user')} kept"
        return f"since {self.previous.run_id}: {counts or 'nothing has changed'}; {what}"

    def _files(self, buckets: Sequence[int]) -> list[str]:
        """Return the files with the users of these buckets; all files if the buckets differ."""
        parts = self.previous.facts(TrainFacts).waves
        return [name for part in parts for name in part.files
                if not self.facts.same_buckets
                or not set(part.buckets).isdisjoint(buckets)]  # fmt: skip


def _change(number: int, name: str) -> str:
    """Return a number of ``users new`` or ``items vanished`` as text for people."""
    noun, _, change = name.partition("s ")
    return f"{count_of(number, noun)} {change}"


def job_facts(job: LearnJob) -> JobFacts:
    """Return what decides a model beside features and ratings, for the manifest."""
    return JobFacts(
        specs=tuple(plain(spec) for spec in job.specs),
        panel=tuple(sorted(job.panel.items())),
        min_ratings=job.min_ratings,
        margin=job.margin,
        limits=plain(job.limits),
        propensities=None if job.propensities is None else plain(job.propensities),
        levels=None if job.levels is None else plain(job.levels),
    )


def previous_run(config: Config, run: Run) -> Run | None:
    """Return the run whose models may be kept, or None; raise `ConfigError` if it has no models."""
    if config.previous is None:
        return None
    previous = Run(run.spark, config.store, config.previous)
    if previous.record("train") is None:
        raise ConfigError(
            f"previous: run {config.previous!r} in {config.store} has not finished 'train': name "
            "a run that has, or leave `previous` out"
        )
    return previous


def keep_models(config: Config, job: LearnJob, blocks: DataFrame, run: Run) -> Kept | None:
    """Compare the run with the previous one, if there is one, and write the changes."""
    previous = previous_run(config, run)
    if previous is None:
        return None
    _check_numbers(previous, run)
    changed_rows = _changes(config, blocks, previous, run)
    counts = {(row["kind"], row["change"]): row["count"]
              for row in changed_rows.groupBy("kind", "change").count().collect()}  # fmt: skip
    if run.all_ratings and not is_refitted(previous):
        reason: str | None = "the previous run has no models from all ratings"
    else:
        previous = FinalRun(previous) if run.all_ratings else previous
        reason = _why_all(config, job, previous, run)
    if reason is None:
        previous.read(MODELS)  # checks that all files are as recorded; waves read some of them
    buckets = [_record(one, "prepare")["settings"]["buckets"] for one in (previous, run)]
    facts = PreviousModels(
        run=previous.run_id,
        changes={f"{kind}s {change}": counts.get((kind, change), 0)
                 for kind, change in _COUNTED},
        listed=sum(counts.values()),
        all_learned_because=reason,
        same_buckets=buckets[0] == buckets[1],
    )  # fmt: skip
    changed = changed_rows.where((F.col("kind") == USER) & (F.col("change") != VANISHED))
    ids = changed.select(F.col("id").alias("user_id"))
    return Kept(previous, ids if reason is None else None, facts)


def _changes(config: Config, blocks: DataFrame, previous: Run, run: Run) -> DataFrame:
    """Write the changes, or read those that `train` has written for the same two runs."""
    if run.all_ratings:
        return run.read(CHANGES)
    before = target_blocks(config.train, previous.read(BLOCKS))
    run.write(CHANGES, changes(before, blocks, run.read(ITEMS)).coalesce(1))
    return run.written(CHANGES)


_COUNTED = ((USER, NEW), (USER, CHANGED), (USER, VANISHED), (ITEM, NEW), (ITEM, VANISHED))


def changes(before: DataFrame, blocks: DataFrame, items: DataFrame) -> DataFrame:
    """Return ``kind, id, change`` of new and vanished users and items, and of changed users."""
    of_items = _item_changes(before, blocks, items.select("item", "item_id"))
    return _user_changes(before, blocks).unionByName(of_items)


def _user_changes(before: DataFrame, blocks: DataFrame) -> DataFrame:
    old = before.select("user_id", *_hashes("old"))
    new = blocks.select("user_id", *_hashes("new"))
    same = (F.col("old1") == F.col("new1")) & (F.col("old2") == F.col("new2"))
    change = (
        F.when(F.col("old1").isNull(), NEW).when(F.col("new1").isNull(), VANISHED)
        .when(~same, CHANGED)
    )  # fmt: skip
    both = old.join(new, "user_id", "full_outer").withColumn("change", change)
    differing = both.where(F.col("change").isNotNull())
    return differing.select(F.lit(USER).alias("kind"), F.col("user_id").alias("id"), "change")


def _hashes(name: str) -> list[Column]:
    """Return two hash columns, 128 bits together, that identify the contents of a block."""
    columns = ("user", "n_train", "items", "ratings")
    return [F.xxhash64(*columns).alias(f"{name}1"),
            F.xxhash64(F.lit(1), *columns).alias(f"{name}2")]  # fmt: skip


def _item_changes(before: DataFrame, blocks: DataFrame, items: DataFrame) -> DataFrame:
    """Compare the rated items by number: the run has the numbers of the previous one."""
    old, new = (
        side.select(F.explode("items").alias("item")).distinct().withColumn(name, F.lit(1))
        for name, side in (("old", before), ("new", blocks))
    )
    change = F.when(F.col("old").isNull(), NEW).when(F.col("new").isNull(), VANISHED)
    both = old.join(new, "item", "full_outer").withColumn("change", change)
    named = both.where(F.col("change").isNotNull()).join(items, "item")
    return named.select(F.lit(ITEM).alias("kind"), F.col("item_id").alias("id"), "change")


def _check_numbers(previous: Run, run: Run) -> None:
    for contract in (ITEMS, USERS):
        columns = _names(contract)
        missing = previous.read(contract).join(run.read(contract), columns, "left_anti")
        if missing.head() is not None:
            raise ConfigError(
                f"previous: run {run.run_id!r} has other numbers of {contract.table} than "
                f"{previous.run_id!r}, because it was ingested without `previous`: start a new run"
            )


def _why_all(config: Config, job: LearnJob, previous: Run, run: Run) -> str | None:
    """Return why no model of the previous run can be kept, or None."""
    trained = _record(previous, "train")
    targets = (trained["settings"]["targets_min"], trained["settings"]["targets_max"])
    same_targets = targets == (config.train.targets_min, config.train.targets_max)
    if previous.facts(TrainFacts).job != job_facts(job) or not same_targets:
        return "other learners or settings"
    if _versions(trained["versions"]) != _versions(versions(run.spark)):
        return "other versions of packages"
    if previous.range_of(MODELS, VERSION_COLUMN) != (MODELS.version, MODELS.version):
        return "the previous models have other columns than those of this version"
    old, new = previous.facts(FeatureFacts), run.facts(FeatureFacts)
    if old.files != new.files and _origin(previous) != _origin(run):
        return "the features are new (features.kept_from keeps those of a run)"
    return None


def _origin(run: Run) -> str:
    """Return the fingerprint of the features that a run has learned or kept."""
    return run.facts(FeatureFacts).origin or str(_record(run, "features")["fingerprint"])


def _versions(versions: Record) -> list[Any]:
    return [versions.get(name) for name in _PACKAGES]


def _record(run: Run, stage: str) -> Record:
    return run.record(stage) or {}


def _names(contract: Any) -> list[str]:
    return [column.name for column in contract.columns]
