"""rank: each user's held-out items in the order of a chosen preference function."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.labels import trained_labels
from spark_rank.config.sections import check_rank
from spark_rank.errors import ConfigError
from spark_rank.frames import rank as frames
from spark_rank.reader.recorded import model_labels, recorded_training
from spark_rank.records.results import RankFacts
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.models import all_models, batches_of_models, members_of
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.training import tasks_by_bucket
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, RANKINGS
from spark_rank.users.ranking import MEMBERS, VOTES, RankJob
from spark_rank.wording import count_of

_REMEDY = (
    ": bagging and voted store their members, bpm only with keep_members: run `spark-rank ensemble`"
)


def rank(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Order the held-out items of every user by the models of the chosen learners."""
    settings, learners = config.rank, ranking_learners(config, run)
    job = RankJob(
        tuple(learners), settings.preference, settings.method, settings.top, config.seed,
        distribute_files(spark, run),
    )  # fmt: skip
    ordered = frames.rank(run.read(BLOCKS), all_models(run), job, tasks_by_bucket(run))
    with batches_of_models(run):
        rows = run.write(RANKINGS, ordered)
    facts = _facts(learners, run.written(RANKINGS))
    return StageResult(
        f"{count_of(rows, 'user')}, {count_of(facts.calls, 'question')} for "
        f"{count_of(facts.items, 'item')}",
        {RANKINGS.table: rows},
        facts,
        rows,
    )


def ranking_learners(config: Config, run: Run) -> list[str]:
    """Return the labels of the learners whose scores, votes or members decide the order."""
    settings, trained = config.rank, [entry.label for entry in recorded_training(run).learners]
    of_members = settings.preference == MEMBERS
    labels = members_of(run) if of_members else model_labels(run)
    unknown = [name for name in settings.learners if name not in labels]
    if unknown or (of_members and not labels):
        wanted = repr(unknown[0]) if unknown else "any ensemble"
        kind = "members" if of_members else "models"
        raise ConfigError(
            f"rank.learners: the run has no {kind} of {wanted}, only of "
            f"{', '.join(labels) or 'none'}" + (_REMEDY if of_members else "")
        )
    by_default = (
        labels[:1] if of_members else trained if settings.preference == VOTES else trained[:1]
    )
    return sorted(settings.learners or by_default)


def _facts(learners: Sequence[str], rankings: DataFrame) -> RankFacts:
    sums = rankings.agg(F.sum("calls"), F.sum("n_items")).head() or (None, None)
    return RankFacts(learners=tuple(learners), calls=sums[0] or 0, items=sums[1] or 0)


def _needs(config: Config) -> tuple[str, ...]:
    asks_ensemble = config.rank.preference == MEMBERS or not set(config.rank.learners) <= set(
        trained_labels(config)
    )
    return ("train", "prepare", "features", *(("ensemble",) if asks_ensemble else ()))


STAGE = Stage(
    name="rank",
    run=rank,
    settings=lambda config: config.rank,
    needs=_needs,
    validate=check_rank,
)
