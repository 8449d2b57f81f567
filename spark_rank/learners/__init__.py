"""The learners, by name: one line each makes a learner known to every job, config and report."""

from typing import Any

from spark_rank.learners.base import Learner
from spark_rank.learners.baselines import ConstantScorer, ItemOffsetScorer
from spark_rank.learners.mprank import MPRank
from spark_rank.learners.multiclass_perceptron import MulticlassPerceptron
from spark_rank.learners.oap import OAP
from spark_rank.learners.prank import PRank
from spark_rank.learners.rankboost import RankBoost
from spark_rank.learners.ranksvm import RankSVM
from spark_rank.learners.svrank import SVRank
from spark_rank.learners.widrow_hoff import WidrowHoff

REGISTRY: dict[str, type[Learner]] = {
    "mprank": MPRank,
    "multiclass_perceptron": MulticlassPerceptron,
    "oap": OAP,
    "prank": PRank,
    "rankboost": RankBoost,
    "ranksvm": RankSVM,
    "svrank": SVRank,
    "widrow_hoff": WidrowHoff,
}

# trained beside every learner, under these names
BASELINES: dict[str, type[Learner]] = {
    "constant": ConstantScorer,
    "item_offset": ItemOffsetScorer,
}

# what the train stage learns for every user; an ensemble has a stage of its own
PER_USER: dict[str, type[Learner]] = {
    name: learner for name, learner in REGISTRY.items() if learner is not OAP
}

# the single learners that ensembles are held against on a sequence, by their read-outs
RIVALS: dict[str, tuple[type[Learner], dict[str, Any]]] = {
    "prank": (PRank, {}),
    "prank_averaged": (PRank, {"readout": "averaged"}),
    "prank_voted": (PRank, {"readout": "voted"}),
    "widrow_hoff": (WidrowHoff, {}),
    "multiclass_perceptron": (MulticlassPerceptron, {}),
}

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
]
