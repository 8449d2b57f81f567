"""The learners, by name: one line each makes a learner known to every job, config and report."""

from spark_rank.learners.base import Learner
from spark_rank.learners.baselines import ConstantScorer, ItemOffsetScorer
from spark_rank.learners.mprank import MPRank

REGISTRY: dict[str, type[Learner]] = {
    "mprank": MPRank,
}

# trained beside every learner, under these names
BASELINES: dict[str, type[Learner]] = {
    "constant": ConstantScorer,
    "item_offset": ItemOffsetScorer,
}

__all__ = ["BASELINES", "REGISTRY", "ConstantScorer", "ItemOffsetScorer", "Learner", "MPRank"]
