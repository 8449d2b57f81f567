"""Learners by name: those of this package, of installed packages, and of any module.

A package registers its learners under the entry-point group ``spark_rank.learners``. Without that,
``module:Class`` names a learner of any module that driver and workers can import.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spark_rank.learners.base import Learner
from spark_rank.learners.baselines import ConstantScorer, ItemOffsetScorer
from spark_rank.learners.errors import UnknownLearnerError
from spark_rank.learners.mprank import MPRank
from spark_rank.learners.multiclass_perceptron import MulticlassPerceptron
from spark_rank.learners.oap import OAP
from spark_rank.learners.prank import PRank
from spark_rank.learners.rankboost import RankBoost
from spark_rank.learners.ranksvm import RankSVM
from spark_rank.learners.svrank import SVRank
from spark_rank.learners.widrow_hoff import WidrowHoff

GROUP = "spark_rank.learners"

# a line here registers a learner for every job, configuration and report
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

# learned beside every learner, under these names
BASELINES: dict[str, type[Learner]] = {
    "constant": ConstantScorer,
    "item_offset": ItemOffsetScorer,
}

# the learners of the stage `train`; ensembles have a stage of their own
PER_USER: dict[str, type[Learner]] = {
    name: learner for name, learner in REGISTRY.items() if learner is not OAP
}

# the single learners that ensembles are compared with on a sequence, by name and read-out
RIVALS: dict[str, tuple[type[Learner], dict[str, Any]]] = {
    "prank": (PRank, {}),
    "prank_averaged": (PRank, {"readout": "averaged"}),
    "prank_voted": (PRank, {"readout": "voted"}),
    "widrow_hoff": (WidrowHoff, {}),
    "multiclass_perceptron": (MulticlassPerceptron, {}),
}


def learner_names() -> list[str]:
    """Return the names of all learners of `train`, including those of installed packages."""
    return [*PER_USER, *sorted(_installed().keys() - REGISTRY.keys())]


@lru_cache
def learner_class(name: str) -> type[Learner]:
    """Return the class of a learner of `train` or a baseline, or raise `UnknownLearnerError`."""
    built_in = {**PER_USER, **BASELINES}.get(name)
    if built_in is not None:
        return built_in
    if name in _installed():
        return _checked(_loaded(name, _installed()[name].load), name)
    module, colon, attribute = name.partition(":")
    if colon:
        loaded = _loaded(name, lambda: getattr(importlib.import_module(module), attribute))
        return _checked(loaded, name)
    if name in REGISTRY:
        raise UnknownLearnerError(
            f"{name!r} is a class for arrays; the stage train takes {', '.join(PER_USER)}"
        )
    raise UnknownLearnerError(f"unknown learner {name!r}")


@lru_cache
def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _loaded(name: str, load: Any) -> Any:
    try:
        return load()
    except (ImportError, AttributeError) as error:
        raise UnknownLearnerError(f"learner {name!r} cannot be imported: {error}") from None


def _checked(loaded: Any, name: str) -> type[Learner]:
    if not (isinstance(loaded, type) and issubclass(loaded, Learner)):
        raise UnknownLearnerError(
            f"learner {name!r} is not a learner class: derive it from spark_rank.learners.Learner"
        )
    return loaded
