"""The stages of a run, in order; each is a function (config, spark, run) -> result."""

from spark_rank.config import Config
from spark_rank.stages import (
    aggregate,
    ensemble,
    evaluate,
    experiment,
    features,
    ingest,
    predictions,
    prepare,
    rank,
    recommend,
    refit,
    report,
    synthesize,
    theorems,
    train,
    tune,
)
from spark_rank.stages.stage import Stage

STAGES: dict[str, Stage] = {
    module.STAGE.name: module.STAGE
    for module in (
        synthesize, ingest, prepare, features, tune, train, ensemble, evaluate, predictions, rank,
        aggregate, refit, recommend, theorems, experiment, report,
    )
}  # fmt: skip


def pipeline(config: Config) -> list[Stage]:
    """Return the stages of a pipeline; no data set is generated if `input.path` is set.

    The theorems and the papers' experiments have their own commands.
    """
    skipped = {"theorems", "experiment"}
    if config.input.path is not None:
        skipped.add("synthesize")
    if not config.ensemble.in_pipeline:
        skipped.add("ensemble")
    if not config.predictions.in_pipeline:
        skipped.add("predictions")
    if not tune.is_needed(config):
        skipped.add("tune")
    # every document belongs to one query, so there are no unseen items to list
    if not config.recommend.in_pipeline or config.input.format == "letor":
        skipped.add("recommend")
    # refitted models are only for the lists
    if not config.refit.in_pipeline or "recommend" in skipped:
        skipped.add("refit")
    return [stage for name, stage in STAGES.items() if name not in skipped]
