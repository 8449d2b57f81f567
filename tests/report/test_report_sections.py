"""Calibration and stage times in the report of a run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.calibration import CalibrationPoint, calibration_section
from spark_rank.report.ensembles import ensembles_section
from spark_rank.report.page import Plot, Table, render
from spark_rank.report.stage_times import stages_section


def record(stage: str, started: str, seconds: float) -> dict[str, Any]:
    return {"stage": stage, "started": started, "seconds": seconds, "message": f"{stage} done"}


def test_calibration_weighs_by_ratings() -> None:
    points = [
        CalibrationPoint("mine", 2.0, 2.5, 30),
        CalibrationPoint("mine", 4.0, 3.5, 10),
        CalibrationPoint("constant", 3.0, 3.0, 40),
    ]
    section = calibration_section(points)
    table = next(part for part in section.parts if isinstance(part, Table))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["mine", "0.500", "−0.250", "40"],
        ["constant", "0.000", "+0.000", "40"],
    ]
    plot = next(part for part in section.parts if isinstance(part, Plot))
    assert "mine" in plot.svg


def test_without_predictions_calibration_says_so() -> None:
    assert "No learner predicts" in render("t", "s", [calibration_section([])])


def test_stages_stand_in_order_with_their_shares() -> None:
    records = {r["stage"]: r for r in (
        record("train", "2020-01-02", 30.0), record("ingest", "2020-01-01", 10.0)
    )}  # fmt: skip
    section = stages_section(records)
    table = next(part for part in section.parts if isinstance(part, Table))
    assert [[cell.text for cell in row][:3] for row in table.rows] == [
        ["ingest", "10.0", "25 %"], ["train", "30.0", "75 %"]
    ]  # fmt: skip
    plot = next(part for part in section.parts if isinstance(part, Plot))
    assert plot.alt == "Seconds by stage, 40.0 in all; train took longest, 30.0."


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_a_run_that_took_no_time_is_drawn(seconds: float) -> None:
    assert "ingest" in render("t", "s", [stages_section({"a": record("ingest", "x", seconds)})])


@pytest.mark.parametrize("last", [300.0, 4000.0, 5_000_000.0])
def test_a_logarithmic_axis_has_plain_numbers(last: float) -> None:
    band = Band("a", 0, [120.0, last], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25])
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", bands_svg("t", "x", "y", [band], log_x=True))
    assert "200" in labels or "1,000" in labels
    assert not any("mathdefault" in label or "10^" in label or "×" in label for label in labels)


@pytest.mark.parametrize("interval", [0.05, None])
def test_curves_of_ensembles_have_bands(interval: float | None) -> None:
    rows = [
        {"learner": "oap", "round": t, "samples": 9, "online_loss": 1 / t,
         "ci_low": interval and 1 / t - interval, "ci_high": interval and 1 / t + interval}
        for t in (1, 10, 100)
    ]  # fmt: skip
    section = ensembles_section(rows, [], None, {"sequence": "s", "user": None})
    (plot,) = [part for part in section.parts if isinstance(part, Plot)]
    assert ("95 % bands" in plot.alt) == (interval is not None)
    assert "oap 0.010 after 100" in plot.alt
    (band,) = re.findall(r'id="Fill\w+">\s*<defs>(.*?)</defs>', plot.svg, re.DOTALL)
    corners = re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", band)
    # without intervals low and high are the curve's own three points
    assert (len(set(corners)) > 3) == (interval is not None)


def test_marks_of_calibration_grow_with_the_ratings() -> None:
    points = [CalibrationPoint("mine", 2.0, 2.5, 10), CalibrationPoint("mine", 4.0, 3.5, 1000)]
    plot = next(p for p in calibration_section(points).parts if isinstance(p, Plot))
    marks = re.findall(r'<path d="([^"]*)"[^>]*fill-opacity: 0.5', plot.svg)
    least, most = (
        np.ptp([float(x) for x in re.findall(r"(-?[\d.]+) -?[\d.]+ *\n", mark)]) for mark in marks
    )
    assert most > 4 * least
