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
    """Return the stages of a whole run; with an input of one's own, nothing is generated.

    The theorems and the papers' experiments are run by their own commands.
    """
    left_out = {"theorems", "experiment"}
    if config.input.path is not None:
        left_out.add("synthesize")
    if not config.ensemble.in_pipeline:
        left_out.add("ensemble")
    if not config.predictions.in_pipeline:
        left_out.add("predictions")
    if not tune.is_needed(config):
        left_out.add("tune")
    # a document belongs to its query: no other query has left it unseen
    if not config.recommend.in_pipeline or config.input.format == "letor":
        left_out.add("recommend")
    # what is learned again is for the lists
    if not config.refit.in_pipeline or "recommend" in left_out:
        left_out.add("refit")
    return [stage for name, stage in STAGES.items() if name not in left_out]
