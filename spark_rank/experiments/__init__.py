"""The papers' experiments, and ours, by name: NumPy only, each a set of independent units."""

from spark_rank.experiments import (
    prank_synthetic,
)
from spark_rank.experiments.frame import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        prank_synthetic,
    )
}  # fmt: skip

__all__ = ["EXPERIMENTS", "Experiment"]
