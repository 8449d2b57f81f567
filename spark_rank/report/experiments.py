"""Experiments in a report: our figures beside the published ones, curves, claims, deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Curve, Experiment
from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.ellipses import ellipses
from spark_rank.report.page import Cell, Plot, Preformatted, Section, Table, render

Rows = Sequence[Mapping[str, Any]]
Part = Table | Plot | Preformatted | str

# what an experiment shows beside tables and curves, from its table of results
PICTURES: dict[str, Callable[[Rows], Sequence[Plot]]] = {"prank_ellipses": ellipses}

_VERDICTS = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True)
class Outcome:
    """What an experiment left: the record of its stage and its tables."""

    record: Mapping[str, Any]
    results: Rows
    summary: Rows
    claims: Rows

    @property
    def experiment(self) -> Experiment:
        """Return its definition."""
        return EXPERIMENTS[self.record["settings"]["name"]]

    @property
    def skipped(self) -> bool:
        """Tell whether its data was missing."""
        return bool(self.record["facts"].get("skipped"))


def experiment_page(run_id: str, outcome: Outcome) -> str:
    """Return the page of one experiment."""
    subtitle = outcome.experiment.source
    return render(f"spark_rank experiment {run_id}", subtitle, [
        experiment_section(outcome),
        Section("How it was run", [_facts(outcome), Preformatted(_settings(outcome))]),
    ])  # fmt: skip


def reproduction_page(outcomes: Mapping[str, Outcome]) -> str:
    """Return one page about several experiments, by their run ids."""
    done = [outcome for outcome in outcomes.values() if not outcome.skipped]
    subtitle = f"{len(done)} of {len(outcomes)} experiments; the data decides which can be run"
    settings = {run_id: outcome.record["settings"] for run_id, outcome in outcomes.items()}
    return render("The papers' experiments", subtitle, [
        overview_section(outcomes),
        *[experiment_section(outcome) for outcome in outcomes.values()],
        _how_they_were_run(outcomes),
        Section("Settings", [Preformatted(_as_yaml(settings))]),
    ])  # fmt: skip


def experiment_section(outcome: Outcome) -> Section:
    """Return all that there is to say of an experiment's findings."""
    experiment, facts = outcome.experiment, outcome.record["facts"]
    parts: list[Part] = [experiment.about]
    if facts["data"]:
        parts.append(f"Data: {', '.join(sorted(set(facts['data'].values())))}.")
    parts += [f"Missing data: {missing}." for missing in facts["missing"]]
    if outcome.skipped:
        return Section(experiment.title, [*parts, "So it was skipped."])
    parts += [_figures(outcome, metric) for metric in _metrics(outcome)]
    parts += [plot for curve in experiment.curves for plot in _curves(outcome, curve)]
    if experiment.name in PICTURES:
        parts += PICTURES[experiment.name](outcome.results)
    if outcome.claims:
        parts.append(_claims(outcome.claims))
    parts += [f"Explanation: {text}" for text in experiment.explanations]
    parts += [f"Deviation: {text}" for text in experiment.deviations]
    return Section(experiment.title, parts)


def overview_section(outcomes: Mapping[str, Outcome]) -> Section:
    """Return a row per experiment: whether it ran, and how it compares with its publication."""
    body = [[Cell(run_id), *_overview(outcome)] for run_id, outcome in outcomes.items()]
    header = ["experiment", "source", "units", "figures as published or better", "claims that hold"]
    return Section("Summary", [Table(header, body)])


def _overview(outcome: Outcome) -> list[Cell]:
    experiment = outcome.experiment
    if outcome.skipped:
        words = f"skipped: missing {'; '.join(outcome.record['facts']['missing'])}"
        return [Cell(experiment.source, left=True), Cell(words, left=True), Cell("–"), Cell("–")]
    published = [row for row in outcome.summary if row["differs"] is not None]
    good = sum(not row["differs"] or _is_better(experiment, row) for row in published)
    claims = [row for row in outcome.claims if row["holds"] is not None]
    held = sum(row["holds"] for row in claims)
    return [
        Cell(experiment.source, left=True),
        Cell(f"{outcome.record['facts']['units']:,}"),
        Cell(f"{good} of {len(published)}" if published else "–"),
        Cell(f"{held} of {len(claims)}" if claims else "–"),
    ]


def _metrics(outcome: Outcome) -> list[str]:
    """Return the metrics of numbers that are no points of a curve, in order."""
    curves = {curve.metric for curve in outcome.experiment.curves}
    names = [row["metric"] for row in outcome.summary if _is_shown(row, curves)]
    return list(dict.fromkeys(names))


def _is_shown(row: Mapping[str, Any], curves: set[str]) -> bool:
    return row["x"] is None and row["metric"] not in curves


def _figures(outcome: Outcome, metric: str) -> Table:
    """Return a metric's means, with the published figures where there are any."""
    rows = [row for row in outcome.summary if row["x"] is None and row["metric"] == metric]
    with_parts = len({row["part"] for row in rows}) > 1
    published = any(row["published"] is not None for row in rows)
    undefined = any(row["undefined"] for row in rows)
    header = ["method", *(["part"] if with_parts else []), metric, "95 % interval", "n"]
    header += ["undefined"] if undefined else []
    header += ["published", "difference"] if published else []
    body = []
    for row in rows:
        cells = [Cell(row["method"])]
        cells += [Cell(row["part"], left=True)] if with_parts else []
        cells += [Cell(_number(row["mean"])), Cell(_interval(row["ci_low"], row["ci_high"]))]
        cells += [Cell(f"{row['n']:,}")]
        cells += [Cell(f"{row['undefined']:,}")] if undefined else []
        cells += _published_cells(outcome.experiment, row) if published else []
        body.append(cells)
    caption = (
        "Green: at the published figure or better; red: worse by more than both intervals."
        if published else ""
    )  # fmt: skip
    return Table(header, body, caption)


def _published_cells(experiment: Experiment, row: Mapping[str, Any]) -> list[Cell]:
    if row["published"] is None:
        return [Cell("–"), Cell("–")]
    text = _number(row["published"])
    if row["published_high"] is not None:
        text += f" ± {row['published_high'] - row['published']:.3g}"
    if row["difference"] is None:
        return [Cell(text), Cell("–")]
    better = _is_better(experiment, row)
    return [
        Cell(text),
        Cell(
            f"{row['difference']:+.4g}",
            best=better or row["differs"] is False,
            worse=bool(row["differs"]) and not better,
        ),
    ]


def _is_better(experiment: Experiment, row: Mapping[str, Any]) -> bool:
    sign = -1.0 if row["metric"] in experiment.higher_is_better else 1.0
    return bool(sign * row["difference"] <= 0.0)


def _curves(outcome: Outcome, curve: Curve) -> list[Plot]:
    rows = [
        row for row in outcome.summary if row["metric"] == curve.metric and row["x"] is not None
    ]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    plots = []
    for part in curve.parts or parts:
        bands = [
            band
            for position, method in enumerate(methods)
            if (band := _band(rows, part, method, position)) is not None
        ]
        if not bands:
            continue
        title = curve.title if len(parts) == 1 else f"{curve.title}: {part}"
        svg = bands_svg(
            title,
            curve.x_axis,
            curve.y_axis,
            bands,
            log_x=curve.log_x,
            log_y=curve.log_y,
            y_limits=curve.y_limits,
        )
        ends = ", ".join(f"{band.label} {band.y[-1]:.3f}" for band in bands)
        alt = f"{title}, {curve.y_axis} by {curve.x_axis}, with 95 % bands; at the end: {ends}."
        plots.append(Plot(svg, alt))
    return plots


def _band(rows: Rows, part: str, method: str, position: int) -> Band | None:
    points = sorted(
        (row for row in rows
         if row["part"] == part and row["method"] == method and row["mean"] is not None),
        key=lambda row: float(row["x"]),
    )  # fmt: skip
    if not points:
        return None
    ends = [
        [row["mean"] if row[end] is None else row[end] for row in points]
        for end in ("ci_low", "ci_high")
    ]
    x, y = [row["x"] for row in points], [row["mean"] for row in points]
    return Band(method, position, x, y, *ends)


def _claims(claims: Rows) -> Table:
    with_parts = len({row["part"] for row in claims}) > 1
    header = ["statement", *(["part"] if with_parts else []), "metric", "by", "95 % interval", "n"]
    body = [
        [
            Cell(row["statement"]),
            *([Cell(row["part"], left=True)] if with_parts else []),
            Cell(row["metric"], left=True),
            Cell("–" if row["difference"] is None else f"{row['difference']:+.4g}"),
            Cell(_interval(row["ci_low"], row["ci_high"])),
            Cell(f"{row['n']:,}"),
            Cell(_VERDICTS[row["holds"]], best=bool(row["holds"]), worse=row["holds"] is False),
        ]
        for row in claims
    ]
    caption = "Differences on the same units; undecided: the interval holds 0."
    return Table([*header, "holds"], body, caption)


def _facts(outcome: Outcome) -> str:
    record = outcome.record
    return (
        f"{record['facts']['units']:,} units of work in {record['seconds']:.1f} s on "
        f"{record['spark']['parallelism']} cores, seed {record['seed']}."
    )


def _settings(outcome: Outcome) -> str:
    return _as_yaml({**outcome.record["settings"], "versions": outcome.record["versions"]})


def _how_they_were_run(outcomes: Mapping[str, Outcome]) -> Section:
    body = [
        [
            Cell(run_id),
            Cell(f"{outcome.record['facts']['units']:,}"),
            Cell(f"{outcome.record['seconds']:.1f}"),
            Cell(outcome.record["spark"]["parallelism"]),
            Cell(str(outcome.record["seed"])),
            Cell(str(outcome.record["started"])),
        ]
        for run_id, outcome in outcomes.items()
    ]
    header = ["experiment", "units of work", "seconds", "cores", "seed", "started"]
    return Section("How they were run", [Table(header, body)])


def _as_yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.4g} to {high:.4g}"
