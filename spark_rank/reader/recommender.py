"""`Recommender`: scores, lists and explanations from a finished run, without Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import fs

from spark_rank.config.schema import ITEM_OFFSET, RecommendConfig
from spark_rank.errors import ConfigError, UnknownIdError
from spark_rank.features.files import ItemFeatures, open_files
from spark_rank.reader.facts import ModelFacts, model_facts, recorded_lists
from spark_rank.reader.folding import NOBODY, block_of, check_ratings, learned
from spark_rank.reader.items import Items, items_of
from spark_rank.reader.run_folder import RunFolder
from spark_rank.reader.user_model import UserModel
from spark_rank.reader.user_rows import UserRows
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS, ITEMS, TITLES
from spark_rank.tables.user_buckets import bucket_of
from spark_rank.users.joining import ScoringLearner, as_scoring, scoring_models, with_models
from spark_rank.users.learning import FAILED

Row = dict[str, Any]
_BLOCK_COLUMNS = ("user", "items", "ratings", "n_train")


class Recommender:
    """Scores, lists and explanations of a finished run's users, and of new ones.

    ::

        recommender = Recommender.open("store/runs/run_id=tuesday")
        recommender.recommend("u42", 10)
        recommender.fold_in({"i1": 5, "i7": 2}).recommend(10)

    Several threads may share one object.
    """

    def __init__(self, folder: RunFolder, facts: ModelFacts, items: Items) -> None:
        self._folder = folder
        self._facts = facts
        self._items = items
        self._blocks = UserRows(folder, BLOCKS, _BLOCK_COLUMNS)
        self._models = [UserRows(folder, contract) for contract in facts.tables]

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        learner: str | None = None,
        measured: bool = False,
        filesystem: fs.FileSystem | None = None,
    ) -> Self:
        """Open the run in the folder ``<store>/runs/run_id=NAME``: a local path or a URI.

        With `filesystem`, `path` is a path on it. `learner` is a label; the default is the learner
        of the run's lists. Models from all ratings are used if the run has them; with `measured`,
        those from the training part, which `metrics` and `predictions` describe.
        """
        return cls.of(RunFolder.at(path, filesystem), RecommendConfig(), learner, measured=measured)

    @classmethod
    def of(
        cls,
        folder: RunFolder,
        lists: RecommendConfig,
        learner: str | None = None,
        *,
        measured: bool = False,
        key: str = "learner",
    ) -> Self:
        """Open a run; `lists` are the settings of lists if the run has none."""
        settings = recorded_lists(folder) or lists
        if learner is not None:
            settings = replace(settings, learner=learner)
        facts = model_facts(folder, folder.root, settings, key, measured=measured)
        features = _features(folder, facts)
        counted = "n" if facts.all_ratings else "n_train"
        return cls(folder, facts, items_of(folder, features, settings, counted))

    @property
    def learner(self) -> str:
        """Return the label of the learner whose models are used."""
        return self._facts.scored_by.learner

    @property
    def facts(self) -> ModelFacts:
        """Return the facts of the models: their learner, features and limits."""
        return self._facts

    @property
    def items(self) -> Items:
        """Return the items of the run."""
        return self._items

    @property
    def list_length(self) -> int:
        """Return how many best items a list of the run has."""
        return self._facts.lists.top

    @property
    def rating_limits(self) -> tuple[float, float]:
        """Return the least and the greatest rating of the scale."""
        return self._facts.score.low, self._facts.score.high

    @property
    def item_ids(self) -> list[str]:
        """Return the ids of all items."""
        return list(self._items.ids)

    @property
    def measured(self) -> bool:
        """Tell whether the models are learned from the training part alone."""
        return not self._facts.all_ratings

    def copy_to(self, target: str | os.PathLike[str]) -> None:
        """Copy the files that this object reads into a local folder, which `open` takes as a run.

        Other tables of the run are not copied.
        """
        for key in ("include_from", "exclude_from"):
            if getattr(self._facts.lists, key) is not None:
                raise ConfigError(
                    f"recommend.{key}: the lists depend on a file outside the run: make a run that "
                    f"names its ids in recommend.{key.removesuffix('_from')}"
                )
        root = f"{self._folder.root}/"
        names = [*self._folder.record_names(), *self._feature_names()]
        for contract in self._tables():
            files = self._folder.table_files(contract)
            names += [path.removeprefix(root) for path in files]
        for name in names:
            self._folder.copy(name, Path(target) / name)

    def _tables(self) -> list[Contract]:
        optional = [table for table in (TITLES, self._facts.panel) if self._folder.has(table)]
        return [BLOCKS, ITEMS, ITEM_COUNTS, *self._facts.tables, *optional]

    def _feature_names(self) -> list[str]:
        facts = self._facts
        return [f"{facts.feature_files}/{file.name}" for file in facts.learn.files.all()]

    def score(
        self, user_id: str, item_ids: Sequence[str], *, default: float | None = None
    ) -> NDArray[np.float64]:
        """Return a user's score of every item.

        An unknown item gets `default`; without one it raises `UnknownIdError`.
        """
        return self.model_of(user_id).score(item_ids, default=default)

    def recommend(self, user_id: str, count: int = 10, *, exclude: Iterable[str] = ()) -> list[Row]:
        """Return a user's best unseen items without `exclude`, as rows of `recommendations`."""
        return self.model_of(user_id).recommend(count, exclude=exclude)

    def explain(self, user_id: str, item_id: str | None = None, *, count: int = 10) -> Row:
        """Return what contributes to a user's score of an item, or to all scores without one."""
        return self.model_of(user_id).explain(item_id, count=count)

    def user(self, user_id: str) -> Row:
        """Return the user's row of the table of models."""
        return self.model_of(user_id).row

    def similar_items(self, item_id: str, count: int = 10) -> list[Row]:
        """Return the items whose features are most similar to an item's, by the cosine."""
        return self._items.similar(item_id, count)

    def fold_in(self, ratings: Mapping[str, float], *, user_id: str = "") -> UserModel:
        """Learn a model from a new user's ratings, the same as `train` learns from them.

        On-line learners take the ratings in the given order. `user_id` matters for learners that
        draw at random, and where the user is a reviewer: nobody is his or her own reviewer.
        """
        check_ratings(ratings)
        items = self._items.numbers(ratings)
        values = np.array(list(ratings.values()), dtype=np.float32)
        block = block_of(self._number(user_id), user_id, items, values)
        rows = learned(block, self._facts.scored_by, self._facts.learn, self._items.features)
        rated = {"items": items, "ratings": values.tolist(), "n_train": len(items)}
        return self._user_model(block, rows, ScoringLearner(self.learner, ITEM_OFFSET), rated)

    def model_of(self, user_id: str) -> UserModel:
        """Return a user's model, or raise `UnknownIdError`."""
        bucket = bucket_of(user_id, self._facts.buckets)
        block_table = self._blocks.of_user(user_id, bucket)
        if block_table is None:
            raise UnknownIdError(f"the run has no user {user_id!r}", user_id)
        tables = [table for rows in self._models if (table := rows.of_user(user_id, bucket))]
        models = pa.concat_tables(tables, promote_options="default") if tables else None
        if models is None or self.learner not in models.column("learner").to_pylist():
            raise UnknownIdError(
                f"user {user_id!r} has no model of {self.learner!r}: prepare.filters or "
                "train.targets_min and targets_max leave the user out",
                user_id,
            )
        block = block_table.to_pylist()[0]
        if self._facts.all_ratings:
            block["n_train"] = len(block["items"])
        in_bucket = block_table.append_column("bucket", pa.array([bucket], pa.int32()))
        batch = in_bucket.combine_chunks().to_batches()[0]
        return self._user_model(batch, models, self._facts.scored_by, block)

    def _number(self, user_id: str) -> int:
        block = self._blocks.of_user(user_id, bucket_of(user_id, self._facts.buckets))
        return NOBODY if block is None else int(block.column("user")[0].as_py())

    def _user_model(
        self, block: pa.RecordBatch, models: pa.Table, scored_by: ScoringLearner, rated: Row
    ) -> UserModel:
        model_row = models.slice(pc.index(models.column("learner"), scored_by.learner).as_py(), 1)
        if model_row.column("status")[0].as_py() != FAILED:
            models, scored_by = model_row, ScoringLearner(scored_by.learner, None)
        scoring = scoring_models(as_scoring(models), scored_by)
        batch = with_models(block, scoring, pa.array([0], pa.int32()))
        return UserModel(self._items, self._facts, self._reviewers, batch, model_row, rated)

    @cached_property
    def _reviewers(self) -> dict[int, str]:
        if not self._folder.has(self._facts.panel):
            return {}
        panel = self._folder.read(self._facts.panel, ["feature", "user_id"])
        return dict(zip(*(column.to_pylist() for column in panel.columns), strict=True))


def _features(folder: RunFolder, facts: ModelFacts) -> ItemFeatures:
    """Map the feature files; those of a remote file system are copied first."""
    files, place = facts.learn.files, facts.feature_files
    if folder.is_local:
        return open_files(files, f"{folder.root}/{place}")
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as copies:
        for file in files.all():
            folder.copy(f"{place}/{file.name}", Path(copies) / file.name)
        return open_files(files, copies)  # a mapped file stays readable after it is deleted
