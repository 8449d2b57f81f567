"""Measured rates and sizes that the plan is reckoned from, each with the script that measured it.

All times are seconds of one core of the machine they were measured on (two virtual cores of an
x86 server, 24 GB): on another one expect half to twice as much. Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

UNCERTAINTY = 2.0
GIGA = 10**9


@dataclass(frozen=True)
class Rate:
    """A measured number: what it is of, and how it was measured."""

    value: float
    of: str
    measured_by: str


_INGEST = "benchmarks/ingest.py 100000000"
_SCALE = "benchmarks/scale.py 100000000"
_RECOMMEND = "benchmarks/recommend.py 48000"
_PLAN = "benchmarks/plan.py stages"
_CHOICE = "benchmarks/plan_learners.py"
_MEMORY = "benchmarks/plan_memory.py"

RATES: dict[str, Rate] = {
    # seconds of a core
    "start": Rate(4.0, "starting a Spark session", _PLAN),
    "stage": Rate(2.0, "a stage whatever its size", _PLAN),
    "stage ingest": Rate(6.0, "ingest whatever its size", _PLAN),
    "synthesize": Rate(3.0e-8, "a user and item", _PLAN),
    "synthesize rating": Rate(5.4e-6, "a generated rating", _PLAN),
    "ingest netflix": Rate(1.25e-6, "a rating in Netflix's text", _INGEST),
    "ingest": Rate(3.2e-6, "a rating in another format", _PLAN),
    "prepare": Rate(0.9e-6, "a rating", _INGEST),
    "factors": Rate(0.8e-9, "a round, sampled rating and second moment", _SCALE),
    "factors solve": Rate(3.3e-10, "a round, user or item and cubed width", _MEMORY),
    "reviewers": Rate(2.4e-7, "a rating searched for a sample of users or reviewers", _SCALE),
    "model row": Rate(1.4e-5, "a user and learner, to Parquet and Spark", _SCALE),
    "ensemble row": Rate(8.0e-5, "a user and ensemble, through Spark to Parquet", _SCALE),
    "evaluate": Rate(1.25e-5, "a user and learner", _SCALE),
    "evaluate rating": Rate(1.9e-7, "a held-out rating and learner", _SCALE),
    "rank": Rate(5.0e-6, "a user", _PLAN),
    "rank rating": Rate(4.0e-7, "a held-out rating", _PLAN),
    "aggregate": Rate(2.0e-7, "a rating", _PLAN),
    "recommend": Rate(4.0e-5, "a user", _SCALE),
    "recommend score": Rate(2.5e-11, "a user, item and feature, linear models", _RECOMMEND),
    "recommend kernel": Rate(1.0e-10, "a user, item, training rating and feature", _RECOMMEND),
    "choice": Rate(2.5e-4, "a grid with values of C for one user, leave-pair-out", _CHOICE),
    "choice linear": Rate(5.0e-9, "the same, and squared training rating, linear", _CHOICE),
    "choice linear C": Rate(1.8e-9, "the same, and value of C", _CHOICE),
    "choice kernel": Rate(1.4e-10, "a grid and cubed training rating, other kernels", _CHOICE),
    "choice kernel C": Rate(1.2e-11, "the same, and value of C", _CHOICE),
    # bytes
    "worker": Rate(0.5e9, "a Python worker with its libraries and a batch", _PLAN),
    "worker ingest": Rate(0.62e9, "a worker that merges ratings", _PLAN),
    "statistics": Rate(110.0, "a user and learner in a worker of evaluate", _MEMORY),
    "kernel mprank": Rate(12.0, "a squared training rating, mprank with a kernel", _MEMORY),
    "kernel": Rate(32.0, "a squared training rating, other kernel learners", _MEMORY),
    "gathered": Rate(32.0, "a rating of a user and feature", _MEMORY),
    "sampled rating": Rate(90.0, "a rating that factors are learned from", _MEMORY),
    "user moment": Rate(8.0, "a second moment of a sampled user", _MEMORY),
    "item moment": Rate(20.0, "a second moment of an item", _MEMORY),
    "jvm": Rate(0.5e9, "an executor's JVM beside its heap", _INGEST),
    "heap": Rate(0.5e9, "the heap of an executor, whatever its tasks", _PLAN),
    "heap idle": Rate(0.1e9, "the heap of a task, whatever its data", _PLAN),
    "heap rating": Rate(100.0, "the heap of a rating that a core has to do with", _PLAN),
    "heap task": Rate(0.65e9, "the heap of a task's data at most: more goes to disk", _SCALE),
    "driver heap": Rate(1.0e9, "the heap of a driver that runs no tasks", _PLAN),
}


@dataclass(frozen=True)
class LearnerCost:
    """Seconds to learn and measure a user's model of m training ratings on d features.

    `user` + `md` m d + `mds` m d min(m, d) + `mm` m² + `mmd` m² d, fitted to measured times.
    """

    user: float
    md: float
    mds: float
    mm: float
    mmd: float

    def seconds(self, m: float, d: float) -> float:
        """Return the time for one user."""
        return (
            self.user + m * d * (self.md + self.mds * min(m, d)) + m * m * (self.mm + self.mmd * d)
        )


# by learner and whether its kernel is linear: python benchmarks/plan_learners.py
LEARNERS: dict[tuple[str, bool], LearnerCost] = {
    ("baselines", True): LearnerCost(2.0e-05, 1.0e-09, 0.0, 2.4e-10, 0.0),
    ("mprank", True): LearnerCost(7.2e-06, 4.1e-09, 2.0e-11, 9.2e-11, 0.0),
    ("mprank", False): LearnerCost(8.7e-05, 7.1e-09, 1.3e-11, 4.3e-09, 4.2e-11),
    ("svrank", True): LearnerCost(1.3e-04, 3.4e-09, 0.0, 1.6e-10, 0.0),
    ("svrank", False): LearnerCost(1.8e-04, 7.5e-09, 3.5e-12, 4.7e-09, 7.7e-11),
    ("ranksvm", True): LearnerCost(6.4e-04, 0.0, 1.6e-09, 0.0, 0.0),
    ("ranksvm", False): LearnerCost(7.4e-04, 0.0, 0.0, 5.0e-07, 0.0),
    ("prank", True): LearnerCost(7.5e-05, 1.7e-09, 0.0, 1.1e-10, 0.0),
    ("prank", False): LearnerCost(2.3e-04, 3.7e-08, 7.1e-11, 2.2e-08, 7.9e-11),
    ("rankboost", True): LearnerCost(1.9e-03, 2.6e-07, 0.0, 2.5e-09, 0.0),
    ("widrow_hoff", True): LearnerCost(7.0e-05, 1.7e-09, 0.0, 1.1e-10, 0.0),
    ("multiclass_perceptron", True): LearnerCost(9.1e-05, 2.8e-09, 0.0, 1.9e-10, 0.0),
}


def learner_cost(learner: str, linear: bool) -> LearnerCost:
    """Return the cost of a learner; of one that nobody has measured, that of PRank."""
    return LEARNERS.get((learner, linear)) or LEARNERS["prank", linear]


def starting(stage: str) -> float:
    """Return the seconds of a stage without data."""
    return rate(f"stage {stage}" if f"stage {stage}" in RATES else "stage")


def rate(name: str) -> float:
    """Return a measured number."""
    return RATES[name].value
