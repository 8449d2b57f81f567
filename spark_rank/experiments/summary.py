"""Summarises the results of all units: means with intervals, beside the published figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spark_rank.experiments.frame import Claim, Experiment, Published, Result
from spark_rank.metrics.comparison import holm, signed_rank_p
from spark_rank.metrics.intervals import t_interval

Key = tuple[str, str, str, float | None]
Name = int | str | None
_LEVEL = 0.95


@dataclass(frozen=True)
class Found:
    """A result with the number of its unit."""

    unit: int
    result: Result

    @property
    def key(self) -> Key:
        """Return part, metric, method and x, which identify the sample of the result."""
        return self.result.part, self.result.metric, self.result.method, self.result.x


@dataclass(frozen=True)
class SummaryRow:
    """A mean over units (or repeats) with its 95 % Student interval, and the published figure.

    `n` counts the values, `undefined` the results without one. `differs` tells whether the two
    intervals (or the interval and the figure, if none was published) are disjoint; None if one of
    them is missing, or if the figure counts in another row.
    """

    experiment: str
    part: str
    metric: str
    method: str
    x: float | None
    n: int
    undefined: int
    mean: float | None
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    published: float | None = None
    published_low: float | None = None
    published_high: float | None = None
    difference: float | None = None
    differs: bool | None = None
    source: str | None = None


@dataclass(frozen=True)
class ClaimRow:
    """A claim, and the mean over the same units of ``higher − lower`` with its 95 % interval.

    `holds` is None if the interval contains 0, or nothing can be compared. `wilcoxon_p` is the
    p-value of the two-sided signed-rank test; `wilcoxon_p_holm` is corrected for all claims of the
    experiment.
    """

    experiment: str
    statement: str
    part: str
    metric: str
    lower: str
    higher: str
    x: float | None
    n: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    wilcoxon_p: float | None
    wilcoxon_p_holm: float | None
    holds: bool | None
    source: str | None


def summarise(experiment: Experiment, settings: object, found: Iterable[Found]) -> list[SummaryRow]:
    """Return a row per part, metric, method and x, in the order of their first results.

    A published figure without results has a row without a mean.
    """
    published = {_place(figure): figure for figure in experiment.published(settings)}
    rows = []
    for key, sample in _samples(experiment, found).items():
        figure = published.pop(key, None)
        rows.append(_row(experiment.name, key, list(sample.values()), figure))
    missing = {key: figure for key, figure in published.items() if not figure.again}
    return rows + [_row(experiment.name, key, [], figure) for key, figure in missing.items()]


def compare(experiment: Experiment, settings: object, found: Iterable[Found]) -> list[ClaimRow]:
    """Return a row per claim; claims on parts that did not run are left out."""
    samples = _samples(experiment, found)
    run = {part for part, *_ in samples}
    claims = [claim for claim in experiment.claims(settings) if claim.part in run]
    return _corrected([_claim_row(experiment.name, claim, samples) for claim in claims])


def _corrected(rows: Sequence[ClaimRow]) -> list[ClaimRow]:
    """Return the rows with p-values corrected for the number of tested claims."""
    tested = [row.wilcoxon_p for row in rows if row.wilcoxon_p is not None]
    adjusted = iter(holm(tested).tolist())
    return [
        row if row.wilcoxon_p is None else replace(row, wilcoxon_p_holm=next(adjusted))
        for row in rows
    ]


def _samples(experiment: Experiment, found: Iterable[Found]) -> dict[Key, dict[Name, float | None]]:
    """Return the values by key, then by unit, repeat or test user."""
    samples: dict[Key, dict[Name, list[float | None]]] = {}
    for each in found:
        names = {"unit": each.unit, "repeat": each.result.repeat, "target": each.result.target}
        name = names[experiment.average]
        samples.setdefault(each.key, {}).setdefault(name, []).append(each.result.value)
    return {
        key: {name: _mean(values) for name, values in by_name.items()}
        for key, by_name in samples.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def _row(
    experiment: str, key: Key, values: Sequence[float | None], figure: Published | None
) -> SummaryRow:
    defined = np.array([value for value in values if value is not None])
    interval = t_interval(defined, _LEVEL)
    part, metric, method, x = key
    row = SummaryRow(
        experiment=experiment,
        part=part,
        metric=metric,
        method=method,
        x=x,
        n=len(defined),
        undefined=len(values) - len(defined),
        mean=float(defined.mean()) if len(defined) else None,
        sd=float(defined.std(ddof=1)) if len(defined) > 1 else None,
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
    )
    return row if figure is None else _beside(row, figure)


def _beside(row: SummaryRow, figure: Published) -> SummaryRow:
    low, high = figure.value - (figure.reach or 0.0), figure.value + (figure.reach or 0.0)
    differs = None
    if row.ci_low is not None and row.ci_high is not None and not figure.again:
        differs = row.ci_high < low or row.ci_low > high
    return SummaryRow(
        **{
            **vars(row),
            "published": figure.value,
            "published_low": None if figure.reach is None else low,
            "published_high": None if figure.reach is None else high,
            "difference": None if row.mean is None else row.mean - figure.value,
            "differs": differs,
            "source": figure.source or None,
        }
    )


def _claim_row(
    experiment: str, claim: Claim, samples: Mapping[Key, Mapping[Name, float | None]]
) -> ClaimRow:
    lower = samples.get((claim.part, claim.metric, claim.lower, claim.x), {})
    higher = samples.get((claim.part, claim.metric, claim.higher, claim.x), {})
    differences = [
        above - below
        for name, below in lower.items()
        if below is not None and (above := higher.get(name)) is not None
    ]
    interval = t_interval(differences, _LEVEL)
    holds = None
    if interval is not None and (interval.low > 0.0 or interval.high < 0.0):
        holds = interval.low > 0.0
    return ClaimRow(
        experiment=experiment,
        statement=claim.text,
        part=claim.part,
        metric=claim.metric,
        lower=claim.lower,
        higher=claim.higher,
        x=claim.x,
        n=len(differences),
        difference=float(np.mean(differences)) if differences else None,
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        wilcoxon_p=signed_rank_p(np.array(differences)) if differences else None,
        wilcoxon_p_holm=None,
        holds=holds,
        source=claim.source or None,
    )


def _place(figure: Published) -> Key:
    return figure.part, figure.metric, figure.method, figure.x
