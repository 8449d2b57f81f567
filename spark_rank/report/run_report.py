"""The report of a pipeline run: summary first, then distributions, then the run's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from spark_rank.learners import BASELINES
from spark_rank.report.page import Cell, Plot, Preformatted, Section, Table, render
from spark_rank.report.plots import Histogram, histogram_svg

METRIC_TITLES = {
    "msd": ("MSD", "mean squared difference over pairs"),
    "m1d": ("M1D", "mean 1-norm difference over pairs"),
    "misranking": ("misranking", "share of misranked pairs"),
}


@dataclass(frozen=True)
class RunReport:
    """All that the report shows, small enough for one machine.

    `summary` holds the rows of the summary table, `histograms` per metric the distributions,
    `records` the manifest.
    """

    run_id: str
    summary: Sequence[Mapping[str, Any]]
    histograms: Mapping[str, Sequence[Histogram]]
    records: Mapping[str, Mapping[str, Any]]

    def html(self) -> str:
        """Return the document."""
        return render(
            f"spark_rank run {self.run_id}",
            self._subtitle(),
            [
                Section("Summary", [self._summary_table()]),
                Section("What became of the users", [self._status_table()]),
                Section("Distribution over users", self._plots()),
                Section("Data", [self._data_table()]),
                Section("Stages", [self._stage_table()]),
                Section("Settings", [Preformatted(self._settings())]),
            ],
        )

    def _subtitle(self) -> str:
        ingest = self.records["ingest"]["tables"]
        return (
            f"{ingest['ratings']:,} ratings of {ingest['users']:,} users and "
            f"{ingest['items']:,} items"
        )

    def _learners(self) -> list[str]:
        """Return the learners, baselines first."""
        names = {row["learner"] for row in self.summary}
        return [b for b in BASELINES if b in names] + sorted(names - BASELINES.keys())

    def _summary_table(self) -> Table:
        rows = {(row["learner"], row["metric"]): row for row in self.summary}
        defined = [row for row in self.summary if row["mean"] is not None]
        best = {
            metric: min((r["mean"] for r in defined if r["metric"] == metric), default=None)
            for metric in METRIC_TITLES
        }
        body = [
            [Cell(learner), *[_mean_cell(rows[learner, m], best[m]) for m in METRIC_TITLES]]
            for learner in self._learners()
        ]
        return Table(
            ["learner", *[title for title, _ in METRIC_TITLES.values()]],
            body,
            "Means over users on held-out ratings with 95 % t intervals; lower is better, the "
            "best mean is marked. A constant ranks nothing: all its pairs tie and count as "
            "misranked.",
        )

    def _status_table(self) -> Table:
        body = [
            [Cell(learner), Cell(status, left=True), Cell(f"{count:,}")]
            for learner in self._learners()
            for status, count in self.records["evaluate"]["facts"]["status"][learner].items()
        ]
        return Table(["learner", "status", "users"], body)

    def _plots(self) -> list[Plot | str]:
        plots: list[Plot | str] = []
        for metric, (title, axis) in METRIC_TITLES.items():
            histograms = self.histograms.get(metric, [])
            if not histograms:
                plots.append(f"{title}: no user has a defined value.")
                continue
            means = ", ".join(f"{h.label} {h.mean:.3f}" for h in histograms if h.mean is not None)
            svg = histogram_svg(title, axis, histograms)
            plots.append(Plot(svg, f"Distribution of {axis} over users; means: {means}."))
        return plots

    def _data_table(self) -> Table:
        ingest, prepare = self.records["ingest"], self.records["prepare"]
        quarantined = ingest["facts"]["quarantined_by_reason"]
        facts = [
            ("rows read", ingest["facts"]["rows_in"]),
            ("ratings kept", ingest["tables"]["ratings"]),
            *[(f"quarantined: {reason}", count) for reason, count in quarantined.items()],
            ("users", ingest["tables"]["users"]),
            ("items", ingest["tables"]["items"]),
            ("most ratings of one user", prepare["facts"]["most_ratings_of_a_user"]),
            ("ratings to learn from", prepare["facts"]["train_ratings"]),
            ("ratings held out", prepare["facts"]["test_ratings"]),
        ]
        return Table(["", "number"], [[Cell(name), Cell(f"{count:,}")] for name, count in facts])

    def _stage_table(self) -> Table:
        ordered = sorted(self.records.values(), key=lambda r: str(r["started"]))
        body = [
            [
                Cell(record["stage"]),
                Cell(str(record["started"]), left=True),
                Cell(f"{record['seconds']:.1f}"),
                Cell(record["message"], left=True),
            ]
            for record in ordered
        ]
        return Table(["stage", "started", "seconds", "result"], body)

    def _settings(self) -> str:
        newest = max(self.records.values(), key=lambda r: str(r["started"]))
        settings = {
            "seed": newest["seed"],
            **{name: r["settings"] for name, r in self.records.items() if r["settings"]},
            "versions": newest["versions"],
        }
        return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def _mean_cell(row: Mapping[str, Any], best: float | None) -> Cell:
    if row["mean"] is None:
        return Cell("–")
    half = "" if row["ci_high"] is None else f" ± {row['ci_high'] - row['mean']:.4f}"
    return Cell(f"{row['mean']:.4f}{half}", best=row["mean"] == best)
