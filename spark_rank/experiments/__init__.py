"""The papers' experiments and our own, by name: NumPy only, each a set of independent units."""

from spark_rank.experiments import (
    boosting,
    bounds,
    modern,
    mprank_loo,
    mprank_online,
    mprank_table1,
    mprank_table2,
    oap_collaborative,
    oap_synthetic,
    prank_batch,
    prank_ellipses,
    prank_ratings,
    prank_synthetic,
    preference,
    queries,
    regret,
)
from spark_rank.experiments.frame import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        prank_synthetic.EXPERIMENT,
        prank_ratings.OVER_100,
        prank_ratings.OVER_200,
        prank_batch.EXPERIMENT,
        prank_ellipses.EXPERIMENT,
        regret.EXPERIMENT,
        oap_synthetic.EXPERIMENT,
        oap_collaborative.JUDGMENTS,
        oap_collaborative.RATINGS,
        mprank_table1.EXPERIMENT,
        mprank_table2.EXPERIMENT,
        mprank_online.EXPERIMENT,
        mprank_loo.EXPERIMENT,
        bounds.EXPERIMENT,
        preference.EXPERIMENT,
        boosting.EXPERIMENT,
        queries.EXPERIMENT,
        modern.EXPERIMENT,
    )
}

__all__ = ["EXPERIMENTS", "Experiment"]
