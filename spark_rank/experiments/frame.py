"""What an experiment is: its settings, its data, its units of work, and what was published.

A unit is one trial (a repeat, a test user, a judge …): a small tuple of whole numbers, computed
from the study alone. What a unit finds depends on nothing but the study and the unit, so units
run anywhere and in any order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spark_rank.config.schema import FormatName
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.records.results import Timing

Unit = tuple[int, ...]


@dataclass(frozen=True)
class RatingFile:
    """A data set on disk: its name, and the paths, below the data folder, it may be found at."""

    name: str
    paths: tuple[str, ...]
    format: FormatName


@dataclass(frozen=True)
class Need:
    """Ratings that an experiment uses: the first of `choices` that is there.

    An experiment runs with those of its needs that are met, and is skipped if none is.
    """

    name: str
    choices: tuple[RatingFile, ...]

    @property
    def files(self) -> str:
        """Say which files would do."""
        return " or ".join(f"{file.paths[0]} ({file.name})" for file in self.choices)


@dataclass(frozen=True)
class Study:
    """An experiment with its settings, the run's seed, and the ratings by the needs' names.

    `chosen` is what its pilot found out; empty before, or without one.
    """

    experiment: str
    settings: Any
    seed: int
    data: Mapping[str, RatingSet] = field(default_factory=dict)
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def generator(self, *keys: int | str) -> np.random.Generator:
        """Return the generator of a draw: a function of seed, experiment and keys alone."""
        text = json.dumps([self.seed, self.experiment, *keys])
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


@dataclass(frozen=True)
class Result:
    """One number of one unit.

    Attributes
    ----------
    method, metric : who was measured, and how.
    value : None where it is undefined; `detail` then says why.
    part : the part of the experiment, such as a data set or a group of users.
    x : where on a curve; None for a number of its own.
    repeat, target : the repeat, and the test user by id, if any.
    """

    method: str
    metric: str
    value: float | None
    part: str = "all"
    x: float | None = None
    repeat: int = 0
    target: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Published:
    """A figure of a paper; `reach` is half its interval's width, None where none was printed.

    `again` marks a figure of another method's that is shown beside this one too: it counts there.
    """

    method: str
    metric: str
    value: float
    reach: float | None = None
    part: str = "all"
    x: float | None = None
    source: str = ""
    again: bool = False


@dataclass(frozen=True)
class Claim:
    """A statement on two methods: `lower` has less of `metric` than `higher`, on the same units.

    `text` says it in the paper's words; `source` says whose claim it is.
    """

    text: str
    metric: str
    lower: str
    higher: str
    part: str = "all"
    x: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Curve:
    """A plot for the report: a metric over x, one line per method and one plot per part.

    Of `methods` (none: all) those that there are; from `x_from` on.
    """

    metric: str
    title: str
    x_axis: str
    y_axis: str
    log_x: bool = False
    log_y: bool = False
    parts: tuple[str, ...] = ()  # empty: all
    y_limits: tuple[float, float] | None = None
    methods: tuple[str, ...] = ()
    x_from: float = -math.inf


@dataclass(frozen=True)
class Pilot:
    """Units that run first, to choose parameters on users who are not tested.

    Attributes
    ----------
    units, run_unit : as of the experiment itself.
    choose : what to do, from the results in the order of the units; JSON can hold it. The study of
        the experiment's own units has it as `chosen`, and the report shows it.
    """

    units: Callable[[Study], Sequence[Unit]]
    run_unit: Callable[[Study, Unit], Sequence[Result]]
    choose: Callable[[Study, Sequence[Result]], Mapping[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """One of the papers' experiments, or of ours.

    Attributes
    ----------
    name : as in ``conf/paper/<name>.yaml``.
    title, source, about : for the report: heading, where it was published, what is done.
    settings : a frozen dataclass declared with `config.schema.setting`.
    units : the independent units of a study.
    run_unit : what one unit finds; module-level, NumPy only.
    needs : the data sets, given the settings.
    published : the papers' figures, given the settings.
    claims : the papers' statements on who is better, given the settings.
    curves : plots of the report.
    deviations : how this differs from the publication, sentence by sentence.
    explanations : sentences on results that differ from the publication, and what was checked.
    pilot : units that go before, to choose parameters.
    timings : what to time, after the units, on the driver.
    average : ``unit`` takes mean and interval over units; ``repeat`` over the means of repeats;
        ``target`` over the means of test users.
    higher_is_better : the metrics of which more is better; of all others less is.
    exact : the metrics whose published figure is to be met: neither more nor less is better.
    """

    name: str
    title: str
    source: str
    about: str
    settings: type
    units: Callable[[Study], Sequence[Unit]]
    run_unit: Callable[[Study, Unit], Sequence[Result]]
    needs: Callable[[Any], Sequence[Need]] = lambda settings: ()
    published: Callable[[Any], Sequence[Published]] = lambda settings: ()
    claims: Callable[[Any], Sequence[Claim]] = lambda settings: ()
    curves: Sequence[Curve] = ()
    deviations: Sequence[str] = ()
    explanations: Sequence[str] = ()
    pilot: Pilot | None = None
    timings: Callable[[Study], Sequence[Timing]] | None = None
    average: str = "unit"
    higher_is_better: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
