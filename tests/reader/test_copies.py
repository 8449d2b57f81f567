"""A copy of the files that a recommender reads gives the same results as the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from spark_rank import Recommender
from spark_rank.config.schema import RecommendConfig
from spark_rank.errors import ConfigError
from spark_rank.reader.run_folder import RunFolder
from spark_rank.store.run import Run


@pytest.fixture
def place(finished: Run) -> Path:
    return Path(finished.root.removeprefix("file:"))


@pytest.mark.parametrize(("learner", "measured"), [("linear", False), ("rbf", True)])
def test_a_copy_answers_as_the_run(
    place: Path, tmp_path: Path, learner: str, measured: bool
) -> None:
    own = Recommender.open(place, learner=learner, measured=measured)
    own.copy_to(tmp_path / "copy")
    copy = Recommender.open(tmp_path / "copy", learner=learner, measured=own.measured)
    first, second, third, *_ = items = own.item_ids
    for user in ("1", "7", "31"):
        np.testing.assert_array_equal(copy.score(user, items), own.score(user, items))
        assert copy.recommend(user, 5) == own.recommend(user, 5)
        assert copy.explain(user, third) == own.explain(user, third)
    new = {first: 5, second: 1, third: 3}
    assert copy.fold_in(new).recommend() == own.fold_in(new).recommend()


@pytest.mark.parametrize("measured", [False, True])
def test_no_other_table_is_copied(place: Path, tmp_path: Path, measured: bool) -> None:
    Recommender.open(place, learner="linear", measured=measured).copy_to(tmp_path)
    models = {"models", "panel", "feature_files"}
    kind = models if measured else {f"final_{name}" for name in models}
    assert {path.name for path in tmp_path.iterdir()} == {
        "manifest", "blocks", "items", "item_counts", *kind,
    }  # fmt: skip


def test_a_copy_comes_from_any_file_system(place: Path, tmp_path: Path) -> None:
    elsewhere = fs.SubTreeFileSystem(str(place.parent), fs.LocalFileSystem())
    own = Recommender.open(place.name, filesystem=elsewhere)
    own.copy_to(tmp_path)
    assert Recommender.open(tmp_path).recommend("7") == own.recommend("7")


def test_lists_that_follow_a_file_elsewhere_are_not_copied(place: Path, tmp_path: Path) -> None:
    run = tmp_path / "run_id=copy"
    shutil.copytree(place, run)
    (run / "manifest/recommend.json").unlink()
    chosen = tmp_path / "chosen.txt"
    chosen.write_text("1\n2\n")
    lists = RecommendConfig(include_from=str(chosen))
    found = Recommender.of(RunFolder.at(run), lists)
    with pytest.raises(ConfigError, match=r"recommend\.include_from: the lists depend on a file"):
        found.copy_to(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
