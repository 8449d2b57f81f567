"""The format of the design page: read as the page says, and taken by everything behind it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, InputConfig
from spark_rank.data.formats import FORMATS, read_ratings
from spark_rank.data.formats.base import Format
from spark_rank.data.quality import with_reason
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run

PAGE = (Path(__file__).parents[2] / "docs/design/add-a-format.md").read_text()
NAME = "star-log"
GOOD = [
    f"2013-05-{1 + n % 28:02} u{n % 7} gave i{n} {1 + n % 5} star{'s' * (n % 5 > 0)}"
    for n in range(40)
]
BAD = {
    "malformed_row": ["2013-05-20 u1 gave i1 4", "u1 gave i1 4 stars", "2013-05-20 u1 gave"],
    "rating_out_of_range": ["2013-05-20 u1 gave i1 7 stars"],
    "unknown_rating_level": ["2013-05-20 u1 gave i1 2.5 stars"],
    "unreadable_timestamp": ["then u1 gave i2 4 stars", "2013-02-30 u1 gave i2 4 stars"],
}


def naive(line: str) -> tuple[str, str, float, int]:
    day, user, _, item, stars, _ = line.split()
    return user, item, float(stars), int(datetime.fromisoformat(f"{day}T00:00+00:00").timestamp())


@pytest.fixture
def star_log(monkeypatch: pytest.MonkeyPatch) -> Format:
    """Put the page's entry among the formats."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "star_log"}
    exec(compile(code, "star_log.py", "exec"), names)
    monkeypatch.setitem(FORMATS, NAME, names["STAR_LOG"])
    return FORMATS[NAME]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "stars.log"
    bad = [line for lines in BAD.values() for line in lines]
    path.write_text("\n".join([*GOOD, "", *bad]) + "\n")
    return path


def test_its_rows_are_those_of_a_naive_reader(
    spark: SparkSession, star_log: Format, file: Path
) -> None:
    settings = InputConfig(path=str(file), format=NAME)  # type: ignore[arg-type]
    rows = with_reason(read_ratings(spark, [str(file)], settings).rows, settings).collect()
    good = {(r.user_id, r.item_id, r.rating, r.timestamp) for r in rows if r.reason is None}
    assert good == set(map(naive, GOOD))
    reasons = {row.raw: row.reason for row in rows if row.reason is not None}
    assert reasons == {line: reason for reason, lines in BAD.items() for line in lines}


def test_its_lines_are_no_other_formats(star_log: Format) -> None:
    assert [name for name, known in FORMATS.items() if known.fits([star_log.example])] == [NAME]


def test_ingest_takes_it(
    spark: SparkSession, star_log: Format, file: Path, make_config: Callable[..., Config]
) -> None:
    config = make_config("input.max_bad_share=0.5")
    own = dataclasses.replace(config.input, path=str(file), format=NAME)
    config = dataclasses.replace(config, input=own)
    run = Run(spark, config.store, config.run_id)
    run_stages([STAGES["ingest"]], config, spark, run)
    assert run.records()["ingest"]["tables"]["ratings"] == len(GOOD)
    refused = run.records()["ingest"]["tables"]["quarantine"]
    assert refused == sum(map(len, BAD.values()))


def test_the_page_names_all_that_a_format_declares() -> None:
    table = PAGE.split("## What a format declares")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))))
    assert named == {entry.name for entry in dataclasses.fields(Format)}
