"""The example scripts do what their first lines say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from spark_rank import Recommender
from spark_rank.store.run import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_duckdb_lists_what_the_run_lists(
    finished: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(finished.root.removeprefix("file:"))
    own = Recommender.open(folder).recommend("7", 5)
    monkeypatch.setattr(sys, "argv", ["script", str(folder), "7", "--learner", "linear"])
    assert example("score_with_duckdb").main() == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [item for item, _ in shown] == [row["item_id"] for row in own]
    assert [float(score) for _, score in shown] == pytest.approx(
        [row["score"] for row in own], abs=1e-3
    )
    monkeypatch.setattr(sys, "argv", ["script", str(folder), "nobody"])
    assert example("score_with_duckdb").main() == 1


def test_without_duckdb_the_script_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(sys, "argv", ["script", str(tmp_path), "7"])
    assert example("score_with_duckdb").main() == 0
    assert "skipped: DuckDB is not installed" in capsys.readouterr().out


@pytest.mark.slow
def test_a_csv_becomes_lists(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = example("csv_to_lists")
    ratings = tmp_path / "ratings.csv"
    module.write_ratings(ratings, users=40, items=60)
    run = module.make_lists(ratings, tmp_path / "store")
    module.show(run, "u0")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines[-5:]) == 5
    assert lines[-6] == "the best unseen items of user u0"
    # an even user likes odd films
    assert sum(int(row["item_id"].split()[1]) % 2 for row in run.recommend("u0", 5)) >= 4


def test_a_file_that_is_not_there_ends_the_script(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        example("csv_to_lists").make_lists(tmp_path / "none.csv", tmp_path / "store")
    assert ended.value.code == 2
