"""The learners of the papers, on plain arrays; no Spark."""

from spark_rank.learners.base import Learner
from spark_rank.learners.baselines import ConstantScorer, ItemOffsetScorer
from spark_rank.learners.mprank import MPRank
from spark_rank.learners.multiclass_perceptron import MulticlassPerceptron
from spark_rank.learners.oap import OAP
from spark_rank.learners.prank import PRank
from spark_rank.learners.rankboost import RankBoost
from spark_rank.learners.ranksvm import RankSVM
from spark_rank.learners.registry import (
    BASELINES,
    PER_USER,
    REGISTRY,
    RIVALS,
    learner_class,
    learner_names,
)
from spark_rank.learners.svrank import SVRank
from spark_rank.learners.widrow_hoff import WidrowHoff

__all__ = [
    "BASELINES",
    "OAP",
    "PER_USER",
    "REGISTRY",
    "RIVALS",
    "ConstantScorer",
    "ItemOffsetScorer",
    "Learner",
    "MPRank",
    "MulticlassPerceptron",
    "PRank",
    "RankBoost",
    "RankSVM",
    "SVRank",
    "WidrowHoff",
    "learner_class",
    "learner_names",
]
