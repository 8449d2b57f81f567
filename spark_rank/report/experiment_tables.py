"""Tables of experiments: our figures beside the published ones, statements, choices, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_rank.experiments.frame import Experiment
from spark_rank.records.results import Timing
from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.numbers import interval, p_value, shown
from spark_rank.report.page import Cell, Heading, Part, Plot, Table

Row = Mapping[str, Any]
Rows = Sequence[Row]

_ROUNDING = 1e-12
_CLAIMS_CAPTION = (
    "Differences are taken unit by unit. Undecided: the interval contains 0. The p-values are from "
    "the signed-rank test, corrected by Holm's method over all statements."
)
_VERDICTS = {True: "yes", False: "no", None: "undecided"}


def single_metrics(experiment: Experiment, summary: Rows) -> list[str]:
    """Return the metrics whose values are single numbers and not points of a curve, in order."""
    curves = {curve.metric for curve in experiment.curves}
    names = [row["metric"] for row in summary if row["x"] is None and row["metric"] not in curves]
    return list(dict.fromkeys(names))


def figures_table(experiment: Experiment, summary: Rows, metric: str) -> Table:
    """Return a metric's means by part, with the published figures where there are any."""
    rows = [row for row in summary if row["x"] is None and row["metric"] == metric]
    published = any(row["published"] is not None for row in rows)
    undefined = any(row["undefined"] for row in rows)
    # compared columns come first: on a narrow screen the others are out of sight
    header = ["method", "mean ± deviation"]
    header += ["published", "difference"] if published else []
    header += ["95 % interval", "n"]
    header += ["undefined"] if undefined else []
    body = []
    for row, heading in _by_part(rows):
        if heading is not None:
            body.append([Cell(heading)])
        cells = [Cell(row["method"]), Cell(_mean(row))]
        cells += _published_cells(experiment, row) if published else []
        cells += [Cell(interval(row["ci_low"], row["ci_high"])), Cell(f"{row['n']:,}")]
        cells += [Cell(f"{row['undefined']:,}")] if undefined else []
        body.append(cells)
    return Table(header, body, _marks_caption(experiment, metric) if published else "")


def claims_table(claims: Rows) -> Table:
    """Return the statements on two methods, with their difference on the same units."""
    header = ["statement", "metric", "by", "holds", "95 % interval", "Wilcoxon p", "n"]
    body = []
    for row, heading in _by_part(claims):
        if heading is not None:
            body.append([Cell(heading)])
        body.append([
            Cell(row["statement"]),
            Cell(row["metric"], left=True),
            Cell(shown(row["difference"], "+.3g")),
            Cell(_VERDICTS[row["holds"]], best=bool(row["holds"]), worse=row["holds"] is False),
            Cell(interval(row["ci_low"], row["ci_high"])),
            Cell(p_value(row.get("wilcoxon_p_holm"))),
            Cell(f"{row['n']:,}"),
        ])  # fmt: skip
    return Table(header, body, _CLAIMS_CAPTION)


def chosen_table(chosen: Mapping[str, Any]) -> Table:
    """Return the settings that the pilot chose, by part and method or by method alone."""
    body = []
    for name, value in chosen.items():
        if "setting" in value:
            body.append([Cell(name), Cell(str(value["setting"]).strip("{}"), left=True)])
            continue
        body.append([Cell(name)])
        body += [
            [Cell(method), Cell(_parameters(point), left=True)] for method, point in value.items()
        ]
    return Table(["method", "setting"], body)


def timing_parts(timings: Sequence[Timing]) -> list[Part]:
    """Return training times by number of ratings: a table and a plot per task."""
    parts: list[Part] = []
    for task in dict.fromkeys(row.task for row in timings):
        task_rows = [row for row in timings if row.task == task]
        methods = list(dict.fromkeys(row.method for row in task_rows))
        sizes = sorted({row.x for row in task_rows})
        seconds = {(row.method, row.x): row.seconds for row in task_rows}
        body = [
            [Cell(f"{size:,.0f}"), *[Cell(_duration(seconds.get((m, size)))) for m in methods]]
            for size in sizes
        ]
        bands = [
            Band(method, position, sizes, times, times, times)
            for position, method in enumerate(methods)
            for times in ([seconds[method, size] for size in sizes],)
        ]
        svg = bands_svg(f"Time: {task}", "ratings", "seconds", bands, log_x=True, log_y=True)
        parts += [
            Heading(f"Time: {task}"),
            Table(["ratings", *methods], body, "One run, one thread; other machines differ."),
            Plot(svg, f"Seconds by number of ratings, {task}: the figures of the table above."),
        ]
    return parts


def is_better(experiment: Experiment, row: Row) -> bool:
    """Tell whether our figure equals or betters the published one; exact ones must be equal."""
    if row["metric"] in experiment.exact:
        return abs(row["difference"]) <= _ROUNDING * max(1.0, abs(row["published"]))
    sign = -1.0 if row["metric"] in experiment.higher_is_better else 1.0
    return bool(sign * row["difference"] <= 0.0)


def _marks_caption(experiment: Experiment, metric: str) -> str:
    if metric in experiment.exact:
        return "✓ the exact figure is within the interval; ✗ it is outside, on either side."
    return "✓ equal to the published figure, within both intervals, or better; ✗ worse by more."


def _by_part(rows: Rows) -> Iterator[tuple[Row, str | None]]:
    """Yield the rows part by part; the first of a part with its name, if there are several."""
    parts = list(dict.fromkeys(row["part"] for row in rows))
    for part in parts:
        part_rows = [row for row in rows if row["part"] == part]
        for place, row in enumerate(part_rows):
            yield row, part if place == 0 and len(parts) > 1 else None


def _published_cells(experiment: Experiment, row: Row) -> list[Cell]:
    if row["published"] is None:
        return [Cell("–"), Cell("–")]
    text = shown(row["published"])
    if row["published_high"] is not None:
        text += f" ± {row['published_high'] - row['published']:.3g}"
    if row["difference"] is None:
        return [Cell(text), Cell("–")]
    better = is_better(experiment, row)
    return [
        Cell(text),
        Cell(
            shown(row["difference"], "+.3g"),
            best=better or row["differs"] is False,
            worse=bool(row["differs"]) and not better,
        ),
    ]


def _mean(row: Row) -> str:
    deviation = "" if row["sd"] is None else f" ± {shown(row['sd'], '.3g')}"
    return shown(row["mean"]) + deviation


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{1000.0 * seconds:.3g} ms"


def _parameters(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in sorted(point.items()))
