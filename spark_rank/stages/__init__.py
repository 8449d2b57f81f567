"""The stages of a run, in order; each is a function (config, spark, run) -> result."""

from spark_rank.config import Config
from spark_rank.engine.stage import Stage
from spark_rank.stages import evaluate, features, ingest, prepare, report, synthesize, train

STAGES: dict[str, Stage] = {
    module.STAGE.name: module.STAGE
    for module in (synthesize, ingest, prepare, features, train, evaluate, report)
}


def pipeline(config: Config) -> list[Stage]:
    """Return the stages of a whole run; with an input of one's own, nothing is generated."""
    generated = config.input.path is None
    return [stage for name, stage in STAGES.items() if generated or name != "synthesize"]
