"""Curves and pictures of experiments: what is drawn, and what the words for it say."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Curve
from spark_rank.experiments.prank_ellipses import POINT_METRICS, REGION
from spark_rank.records.results import ExperimentFacts
from spark_rank.report import experiments
from spark_rank.report.ellipses import COLOURS, ellipses
from spark_rank.report.experiments import Outcome, experiment_section
from spark_rank.report.page import Plot, Section


def summary_rows(methods: dict[str, float], places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "experiment": "e", "part": "all", "metric": "loss", "method": method, "x": x, "n": 3,
            "undefined": 0, "mean": level / x, "sd": 0.1, "ci_low": level / x - 0.1,
            "ci_high": level / x + 0.1, "published": None, "published_low": None,
            "published_high": None, "difference": None, "differs": None, "source": None,
        }
        for method, level in methods.items()
        for x in places
    ]  # fmt: skip


def section_of(
    monkeypatch: pytest.MonkeyPatch, curve: Curve, rows: list[dict[str, Any]]
) -> Section:
    experiment = dataclasses.replace(EXPERIMENTS["prank_synthetic"], curves=(curve,))
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"e": experiment})
    facts = ExperimentFacts(units=3, data={}, missing=())
    return experiment_section(Outcome({"settings": {"name": "e"}}, facts, [], rows, []))


def plots(monkeypatch: pytest.MonkeyPatch, curve: Curve) -> list[Plot]:
    rows = summary_rows({"one": 8.0, "two": 4.0, "three": 2.0}, [1.0, 2.0, 4.0])
    parts = section_of(monkeypatch, curve, rows).parts
    return [part for part in parts if isinstance(part, Plot)]


def test_a_curve_that_is_undefined_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = summary_rows({"too far": 1.0}, [4.0])
    row |= {"n": 0, "undefined": 3, "mean": None, "ci_low": None, "ci_high": None}
    (some,) = summary_rows({"one": 8.0}, [4.0])
    rows = [*summary_rows({"one": 8.0}, [1.0]), {**some, "undefined": 2}, row]
    parts = section_of(monkeypatch, Curve("loss", "L", "round", "loss"), rows).parts
    assert "L: undefined for one in 2 of 5 and for too far in 3 of 3." in parts


def test_a_curve_shows_all_methods_unless_it_names_some(monkeypatch: pytest.MonkeyPatch) -> None:
    (plot,) = plots(monkeypatch, Curve("loss", "Loss", "round", "loss"))
    assert plot.alt.endswith("at the end: one 2, two 1, three 0.5.")
    (plot,) = plots(
        monkeypatch, Curve("loss", "L", "round", "loss", methods=("three", "one", "no"))
    )
    assert plot.alt.endswith("at the end: three 0.5, one 2.")
    assert "two" not in plot.svg.replace("two-", "")


def test_a_curve_begins_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = plots(monkeypatch, Curve("loss", "L", "round", "loss", log_x=True))
    (later,) = plots(monkeypatch, Curve("loss", "L", "round", "loss", log_x=True, x_from=2.0))
    assert whole.alt == later.alt
    assert whole.svg != later.svg
    assert plots(monkeypatch, Curve("loss", "L", "round", "loss", x_from=9.0)) == []


def test_the_picture_of_the_ellipses_names_its_methods() -> None:
    points = [(-0.5, 0.0, 1.0), (0.5, 0.5, 2.0)]
    rows = [
        {"method": "training set", "metric": metric, "x": float(place), "value": point[column]}
        for place, point in enumerate(points)
        for column, metric in enumerate(POINT_METRICS)
    ]
    for method in ("A", "B"):
        rows += [
            {"method": method, "metric": REGION, "x": float(cell), "value": 1.0 + cell % 5}
            for cell in range(100)
        ]
    rows.append({"method": "A", "metric": "rank loss", "x": None, "value": 0.5})
    (plot,) = ellipses(rows)
    assert "predicted by A, B" in plot.alt
    assert ellipses(rows)[0].svg == plot.svg
    # the page's policy lets a browser show no picture that is embedded as data
    assert "<image" not in plot.svg
    assert "data:" not in plot.svg
    assert not re.search(r"url\((?!#)", plot.svg)


def drawn_shares(svg: str) -> dict[str, float]:
    """Return the share of the painted area that is in each colour, from corners of rectangles."""
    areas = {}
    for path, colour in re.findall(r'<path d="([^"]*)"[^>]*style="fill: (#\w+)', svg):
        corners = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float)
        rectangles = corners.reshape(-1, 4, 2)
        areas[colour] = np.abs((rectangles[:, 2] - rectangles[:, 0]).prod(axis=1)).sum()
    return {colour: float(area / sum(areas.values())) for colour, area in areas.items()}


def test_every_cell_of_the_ellipses_is_drawn_in_the_colour_of_its_rank() -> None:
    ranks = np.repeat([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 5.0], 10).reshape(10, 10).T
    rows = [
        {"method": "A", "metric": REGION, "x": float(cell), "value": rank}
        for cell, rank in enumerate(ranks.ravel())
    ]
    (plot,) = ellipses(rows)
    expected = dict(zip(COLOURS, (0.1, 0.2, 0.3, 0.0, 0.4), strict=True))
    del expected[COLOURS[3]]  # no cell has rank 4
    assert drawn_shares(plot.svg) == pytest.approx(expected, rel=1e-4)
