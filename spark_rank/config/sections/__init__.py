"""The checks of each stage's section: one module per stage, none of which needs Spark.

A configuration from a file is checked when it is read, one made in Python when its stages start.
"""

from __future__ import annotations

from spark_rank.config.schema import Config
from spark_rank.config.sections.demo import check_demo
from spark_rank.config.sections.ensemble import check_ensemble
from spark_rank.config.sections.evaluate import check_evaluate
from spark_rank.config.sections.features import check_features
from spark_rank.config.sections.ingest import check_given_split, check_input
from spark_rank.config.sections.prepare import check_prepare
from spark_rank.config.sections.rank import check_rank
from spark_rank.config.sections.recommend import check_recommend
from spark_rank.config.sections.train import check_train

__all__ = [
    "check_demo", "check_ensemble", "check_evaluate", "check_features", "check_given_split",
    "check_input", "check_prepare", "check_rank", "check_recommend", "check_sections",
    "check_train",
]  # fmt: skip


def check_sections(config: Config) -> None:
    """Raise `ConfigError` for the first section with an error."""
    for check in (
        check_input, check_prepare, check_features, check_train, check_ensemble, check_evaluate,
        check_rank, check_recommend, check_demo,
    ):  # fmt: skip
        check(config)
