"""What the README promises is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from spark_rank.cli import STAGES
from spark_rank.tables.contracts import METRIC_COLUMNS, TABLES
from tests.fault_table import HEAD, as_table, written_faults

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_table_of_outputs_is_the_contracts() -> None:
    outputs = README.split("\n## Outputs\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| [^|]+ \| (.+) \|$", outputs, re.MULTILINE))
    assert rows.keys() == TABLES.keys()
    for table, contract in TABLES.items():
        named = re.findall(r"`(\w+)`", rows[table])
        assert named == [column.name for column in contract.columns], table


def test_every_stage_is_named() -> None:
    for stage in STAGES:
        assert f"`{stage}`" in README


def test_every_benchmark_it_names_is_there() -> None:
    for script in re.findall(r"benchmarks/\w+\.py", README):
        assert (Path(__file__).parents[1] / script).exists(), script


def test_every_metric_is_explained() -> None:
    metrics = README.split("\n## Metrics\n")[1].split("\n## ")[0]
    for column in METRIC_COLUMNS:
        assert f"`{column.name}`" in metrics


def test_the_table_of_faults_is_what_the_tests_break() -> None:
    faults = written_faults()
    assert len({what for what, _ in faults}) == len(faults)
    table = README.split(HEAD)[1].split("\n\n")[0]
    remedy = "put there what `python -m tests.fault_table` prints"
    assert (HEAD + table).splitlines() == as_table(faults).splitlines(), remedy
