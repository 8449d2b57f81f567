"""``spark-rank explain`` and ``spark-rank recommend --user``: one user of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spark_rank.config import Config
from spark_rank.errors import ConfigError, UnknownIdError
from spark_rank.reader.near import did_you_mean
from spark_rank.reader.recommender import Recommender
from spark_rank.reader.run_folder import RunFolder
from spark_rank.runs.rendering import columns
from spark_rank.session.arrow_files import arrow_files
from spark_rank.session.files import store_files
from spark_rank.store.run_records import RunRecords
from spark_rank.tables.contracts import USERS

Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """The user, item and learner to explain; `count` is the length of every list."""

    user_id: str
    item_id: str | None = None
    learner: str | None = None
    count: int = 10


def explain(config: Config, question: Question) -> Row:
    """Return an explanation from the run that the configuration names."""
    with store_files("spark_rank explain", config.store, config.spark) as files:
        return answer(config, RunRecords(files, config.store, config.run_id), question)


def answer(config: Config, run: RunRecords, question: Question) -> Row:
    """Return the explanation as plain values for JSON or text."""
    recommender = open_run(config, run, question.learner)
    try:
        model = recommender.model_of(question.user_id)
    except UnknownIdError as error:
        raise ConfigError(f"--user: {_about_user(run, error)}") from None
    try:
        return model.explain(question.item_id, count=question.count)
    except UnknownIdError as error:
        near = did_you_mean(error.unknown, recommender.item_ids)
        raise ConfigError(f"--item: {error} ({near})") from None


def user_list(config: Config, user_id: str, count: int | None) -> list[Row]:
    """Return one user's best unseen items; `count` is by default the length of the run's lists."""
    with store_files("spark_rank recommend", config.store, config.spark) as files:
        run = RunRecords(files, config.store, config.run_id)
        recommender = open_run(config, run, None)
        try:
            return recommender.recommend(
                user_id, recommender.list_length if count is None else count
            )
        except UnknownIdError as error:
            raise ConfigError(f"--user: {_about_user(run, error)}") from None


def as_text(rows: list[Row]) -> str:
    """Return a user's list as text for people."""
    if not rows:
        return "this user has no unseen item that may be in the list"
    head = ("place", "item", "title", "score", "rating", "source")
    cells = [
        (str(row["position"]), row["item_id"], row["title"] or "", f"{row['score']:.3f}",
         "-" if row["predicted_rating"] is None else f"{row['predicted_rating']:.2f}",
         row["source"])
        for row in rows
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in columns([head, *cells]))


def as_json(rows: list[Row]) -> str:
    """Return a user's list as JSON."""
    return json.dumps(rows, indent=2)


def open_run(config: Config, run: RunRecords, learner: str | None) -> Recommender:
    """Return the run's models; `config` has the rules of lists for a run without them."""
    key = "recommend.learner" if learner is None else "--learner"
    return Recommender.of(folder_of(run), config.recommend, learner, key=key)


def folder_of(run: RunRecords) -> RunFolder:
    """Return the run's folder; raise `ConfigError` if there is none."""
    if not run.files.is_directory(run.root):
        raise ConfigError(
            f"run {run.run_id!r} in {run.root} has no models yet: run `spark-rank train` first, or "
            "`spark-rank pipeline` for all stages"
        )
    files = arrow_files(run.files)
    return RunFolder.at(run.root.removeprefix("file:"), files)


def _about_user(run: RunRecords, error: UnknownIdError) -> str:
    """Return why there is no such user: the run has none, or its filters removed the user."""
    ids = folder_of(run).read(USERS, ["user_id"]).column("user_id").to_pylist()
    if error.unknown not in ids:
        return f"the run has no user {error.unknown!r} ({did_you_mean(error.unknown, ids)})"
    return str(error)
