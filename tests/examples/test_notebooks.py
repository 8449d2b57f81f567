"""The notebooks run from top to bottom, and are kept without what they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank import Recommender
from spark_rank.config import Config
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    before = mpl.get_backend()
    mpl.use("Agg")
    yield
    plt.close("all")
    mpl.use(before)


def cells(notebook: Path, kind: str) -> list[str]:
    found = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def executed(notebook: str, **changed: str) -> dict[str, Any]:
    """Run the cells in one namespace; lines that set a name are set to something else."""
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, code in enumerate(cells(EXAMPLES / notebook, "code"), 1):
        lines = code.splitlines()
        for name, value in changed.items():
            lines = [f"{name} = {value!r}" if line.startswith(f"{name} = ") else line
                     for line in lines]  # fmt: skip
        exec(compile("\n".join(lines), f"{notebook}, cell {number}", "exec"), names)
    assert all(names[name] == value for name, value in changed.items())
    return names


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    book = json.loads(notebook.read_text())
    assert book["nbformat"] == 4
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    assert cells(notebook, "markdown")[0].startswith("# ")


def test_every_notebook_is_run_here() -> None:
    assert {path.name for path in NOTEBOOKS} == {"one_user.ipynb", "papers_figure.ipynb"}


def test_one_user_is_looked_at(finished: Run) -> None:
    folder = finished.root.removeprefix("file:")
    run = Recommender.open(folder)
    names = executed("one_user.ipynb", RUN=folder, USER="7")
    listed = names["best"]
    assert list(listed["item_id"]) == [row["item_id"] for row in run.recommend("7", 5)]
    # the last of the models that grow is the one of the list
    np.testing.assert_allclose(names["now"], listed["score"], atol=1e-4)
    np.testing.assert_allclose(names["scores"][-1], names["now"])
    assert 1 < names["learned_from"] < len(names["ratings"])
    assert len(plt.get_fignums()) == 3


def test_the_papers_figure_is_drawn_from_a_run(
    spark: SparkSession, make_config: Callable[..., Config]
) -> None:
    settings = "{repeats: 3, rounds: 300}"
    config = make_config(
        "experiment.name=prank_synthetic", f"experiment.settings={settings}", "run_id=paper"
    )
    found = Run(spark, config.store, config.run_id)
    run_stages([STAGES["experiment"]], config, spark, found)
    names = executed("papers_figure.ipynb", RUN=found.root.removeprefix("file:"))
    (axes,) = names["figure"].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*names["names"].values()]
    for method, line in zip(names["names"], axes.get_lines(), strict=True):
        assert line.get_ydata()[-1] == pytest.approx(names["ends"].loc[method, "mean"])
    assert names["ends"].loc["PRank", "mean"] < 1.5
