"""Every kind of features as a stage: what decides them, what they leave, who can read it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, FeaturesConfig, load_config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.features.files import open_files
from spark_rank.learners import MPRank
from spark_rank.records.facts import Facts
from spark_rank.records.features import FeatureFacts, GivenFacts
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES
from spark_rank.stages.features import _DECIDING, features
from spark_rank.stages.given_features import given_features
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS, METRICS, MODELS, PANEL, USERS
from tests.generated import generated_run
from tests.predicted import predicted

MakeConfig = Callable[..., Config]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/read-tables.md").read_text()
LEARNERS = (
    "train.learners=[{name: mprank_linear, params: {C: 0.3}}, "
    "{name: rbf, params: {C: 10, kernel: rbf, gamma: 0.02}}]"
)
REFERENCE = "features={kind: reference, reference_size: 8, reference_min: 12, reference_pool: 30}"


def run_until(spark: SparkSession, config: Config, last: str) -> Run:
    run = generated_run(spark, config)
    first = "ingest" if config.input.path else "synthesize"
    names = [name for name in STAGES if name != "tune"]
    chosen = names[names.index(first) : names.index(last) + 1]
    run_stages([STAGES[name] for name in chosen], config, spark, run)
    return run


def in_draft(run: Run) -> Run:
    """Return the run as the stage sees it that is in progress."""
    return run.with_draft(run.draft("features", "0" * 16))


def folder_of(run: Run, table: str) -> str:
    return run.path(table).removeprefix("file:")


def opened(run: Run, facts: Facts) -> Any:
    assert isinstance(facts, FeatureFacts)
    files = facts.files
    where = run.path if run._draft is None else run.draft_path
    return open_files(files, where("feature_files").removeprefix("file:"))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write vectors of one's own for the generated items 1, 2, …, but for the first five."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("given") / "vectors.parquet"
    ids = [str(n) for n in range(6, 400)]
    pq.write_table(pa.table({"item_id": ids, "features": list(rng.normal(3, 2, (394, 4)))}), path)
    return path


@pytest.fixture(scope="module")
def reference(spark: SparkSession, make_config: MakeConfig) -> Run:
    return run_until(spark, make_config(REFERENCE, LEARNERS, "prepare.buckets=3"), "evaluate")


@pytest.fixture(scope="module")
def two_runs(
    spark: SparkSession, reference: Run, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, Run]:
    """Return two copies of the run: in one all held-out ratings are others, in other files."""
    copies = [Run(spark, str(tmp_path_factory.mktemp("copy")), "copy") for _ in range(2)]
    for run in copies:
        shutil.copytree(folder_of(reference, "."), folder_of(run, "."))
    same, twin = copies
    held_out = F.transform(
        F.expr("slice(ratings, n_train + 1, size(ratings))"), lambda r: (6 - r + 9).cast("float")
    )
    changed = F.concat(F.slice("ratings", 1, F.col("n_train")), held_out).alias("ratings")
    blocks = reference.read(BLOCKS)
    columns = [changed if name == "ratings" else F.col(name) for name in blocks.columns]
    shutil.rmtree(folder_of(twin, "blocks"))
    blocks.select(columns).repartition(5).write.parquet(twin.path("blocks"))
    return same, twin


KINDS = {
    "reference": "reference_size: 8, reference_min: 12",
    "panel": "panel_size: 7, panel_choice: coverage",
    "factors": "rank: 3, rounds: 3",
    "als": "rank: 3, als_rounds: 3",
    "given": "given: {path}",
    "offset": "offset_shrinkage: 5",
}


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_ratings_and_partitions_change_no_byte_of_any_kind(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run], vectors: Path,
    kind: str,
) -> None:  # fmt: skip
    settings = KINDS[kind].format(path=vectors)
    config = make_config(f"features={{kind: {kind}, {settings}}}")
    found = []
    for run, partitions in zip(map(in_draft, two_runs), ("1", "4"), strict=True):
        with runtime_setting(spark, "spark.sql.shuffle.partitions", partitions):
            result = features(config, spark, run)
        tables = [
            sorted(map(str, spark.read.parquet(run.draft_path(table)).collect()))
            for table in result.tables
        ]
        found.append((result.facts, result.message, tables))
    assert found[0] == found[1]


def test_all_ratings_of_the_reviewers_are_held_out_ones_too(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run]
) -> None:
    config = make_config(REFERENCE, "features.reference_ratings=all", "features.reference_pool=500")
    drafts = [in_draft(run) for run in two_runs]
    ours, theirs = (features(config, spark, run).facts for run in drafts)
    assert isinstance(ours, FeatureFacts)
    assert isinstance(theirs, FeatureFacts)
    assert ours.files.pool is not None
    assert theirs.files.pool is not None
    assert ours.files.pool.items == theirs.files.pool.items
    assert ours.files.pool.ratings != theirs.files.pool.ratings
    sizes = [len(row["items"]) for row in two_runs[0].read(BLOCKS).collect()]
    pool = opened(drafts[0], ours).pool
    assert sorted(np.diff(pool.ends)) == sorted(size for size in sizes if size >= 12)


@pytest.fixture(scope="module")
def generous(
    spark: SparkSession, make_config: MakeConfig, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """Return a run of active users who never give a 1, and of one who gives nothing else."""
    lines = [f"u{u},p{i},{(u + i) % 4 + 2}" for u in range(12) for i in range(u % 3, 24, 2)]
    data = tmp_path_factory.mktemp("generous") / "in.csv"
    data.write_text("\n".join(["user,item,rating", *lines, "new,p1,1", "new,p2,1"]) + "\n")
    sets = (f"input.path={data}", "input.format=csv", "prepare.buckets=2")
    return run_until(spark, make_config(*sets), "prepare")


@pytest.mark.parametrize("kind", ["panel", "reference"])
def test_features_are_about_the_middle_of_the_scale_not_of_the_reviewers_ratings(
    spark: SparkSession, make_config: MakeConfig, generous: Run, kind: str
) -> None:
    run = in_draft(generous)
    config = make_config(f"features={{kind: {kind}, panel_size: 5, reference_min: 10}}")
    result = features(config, spark, run)
    reviewers = spark.read.parquet(run.draft_path("panel")).collect()
    assert "new" not in {row["user_id"] for row in reviewers}
    # ratings are 1 to 5
    assert [row["missing"] for row in reviewers] == [row["median"] - 3.0 for row in reviewers]
    found = opened(run, result.facts)
    values = found.matrix if kind == "panel" else found.pool.ratings
    assert set(np.unique(values)) <= {-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0}
    assert values.max() == 2.0


def test_every_user_has_reviewers_of_the_group_but_never_himself(reference: Run) -> None:
    group = {row["feature"]: row["user_id"] for row in reference.read(PANEL).collect()}
    sizes = {row["user_id"]: len(row["items"]) for row in reference.read(BLOCKS).collect()}
    assert len(group) == 30
    assert all(sizes[user_id] >= 12 for user_id in group.values())
    rows = reference.read(MODELS).where("learner = 'mprank_linear'").collect()
    assert len(rows) == 60
    sets = set()
    for row in rows:
        assert row["reviewers"] == sorted(set(row["reviewers"]))
        assert len(row["reviewers"]) == 8
        assert row["user_id"] not in [group[number] for number in row["reviewers"]]
        assert row["excluded_feature"] is None
        if row["status"] == "learned":
            assert len(row["weights"]) == 8
        sets.add(tuple(row["reviewers"]))
    assert len(sets) > 50
    assert {row["user_id"] for row in rows} & set(group.values())


def test_the_features_of_a_model_are_its_reviewers_ratings(reference: Run) -> None:
    """Refit a user's model from Parquet alone: ratings, medians and offsets as they stand there."""
    model = reference.read(MODELS).where("learner = 'rbf' and status = 'learned'").head()
    assert model is not None
    block = reference.read(BLOCKS).where(F.col("user_id") == model["user_id"]).head()
    assert block is not None
    panel = {row["feature"]: row for row in reference.read(PANEL).collect()}
    offsets = {row["item"]: row["offset"] for row in reference.read(ITEM_FEATURES).collect()}
    blocks = {row["user_id"]: row for row in reference.read(BLOCKS).collect()}
    X = np.empty((len(block["items"]), 8))
    for column, number in enumerate(model["reviewers"]):
        reviewer = blocks[panel[number]["user_id"]]
        shown = slice(0, reviewer["n_train"])
        ratings = dict(zip(reviewer["items"][shown], reviewer["ratings"][shown], strict=True))
        median = np.median(reviewer["ratings"][shown])
        assert panel[number]["median"] == median
        # ratings are 1 to 5
        X[:, column] = [ratings.get(item, median) - 3.0 for item in block["items"]]
    offset, n = np.array([offsets[item] for item in block["items"]]), block["n_train"]
    learner = MPRank(10, kernel="rbf", gamma=0.02)
    learner.fit(X[:n], np.array(block["ratings"][:n]), offset=offset[:n])
    scores = predicted(reference)[model["user_id"], "rbf"].scores
    assert_allclose(scores, learner.decision_function(X[n:], offset=offset[n:]), rtol=1e-4)


def test_the_lines_of_the_page_score_with_reviewers(reference: Run) -> None:
    (query,) = [part for part in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
                if "reviewer_ratings" in part]  # fmt: skip
    query = re.sub(r"'(\w+)/\*", lambda m: f"'{folder_of(reference, m[1])}/*", query)
    scores = {(user, item): score for user, item, score in duckdb.sql(query).fetchall()}
    items = dict(reference.read(ITEMS).select("item", "item_id").collect())
    blocks = {row["user_id"]: row for row in reference.read(BLOCKS).collect()}
    models = reference.read(MODELS).where("learner = 'mprank_linear' and status = 'learned'")
    said, count = predicted(reference), 0
    for model in models.collect():
        block = blocks[model["user_id"]]
        held_out = [items[item] for item in block["items"][block["n_train"] :]]
        found = [scores[model["user_id"], item] for item in held_out]
        assert_allclose(found, said[model["user_id"], "mprank_linear"].scores, rtol=1e-4, atol=1e-5)
        count += len(found)
    assert count > 200
    assert len(scores) == models.count() * len(items)


def test_bounds_and_metrics_are_there_for_reviewers(reference: Run) -> None:
    rows = reference.read(METRICS).where("status = 'learned' and n_test > 1").collect()
    bounded = [row for row in rows if row["learner"] == "mprank_linear"]
    assert bounded
    assert all(row["stability_bound"] > row["train_msd"] for row in bounded)
    facts = (reference.record("features") or {})["facts"]
    # no feature of ratings 1 to 5 is farther from 3 than 2
    assert facts["squared_radius"] == 8 * 2.0**2


def test_the_offset_alone_from_training_to_lists(
    spark: SparkSession, make_config: MakeConfig
) -> None:
    """Nothing is learned but by learners of ranks, whose feature the offset is."""
    learners = "train.learners=[{learner: mprank}, {learner: ranksvm}, {learner: prank}]"
    config = make_config("features={kind: offset}", learners, "prepare.buckets=2")
    run = run_until(spark, config, "train")
    run_stages([STAGES["recommend"]], config, spark, run)
    rows = run.read(MODELS).where("status <> 'failed'").collect()
    assert len(rows) == 60 * 5
    by_learner = {name: {row["user_id"]: row for row in rows if row["learner"] == name}
                  for name in ("item_offset", "mprank", "ranksvm", "prank")}  # fmt: skip
    for learner in ("mprank", "ranksvm"):
        for user, row in by_learner[learner].items():
            assert (row["status"], row["reason"]) == ("fallback", "no_features")
            alone = by_learner["item_offset"][user]["intercept"]
            assert row["intercept"] == pytest.approx(alone, rel=1e-12)
            assert row["weights"] is None
    assert {row["status"] for row in by_learner["prank"].values()} >= {"learned"}
    found = (run.record("recommend") or {})["facts"]
    assert found["places"].keys() == {"fallback: no_features"}
    scores = {row["item_id"]: row["offset"] for row in run.read(ITEM_FEATURES).collect()}
    lists = spark.read.parquet(run.path("recommendations")).where("list = 'top'").collect()
    for row in lists:
        alone = by_learner["item_offset"][row["user_id"]]["intercept"]
        assert row["score"] == pytest.approx(alone + scores[row["item_id"]])


def test_fewer_reviewers_than_asked_for_are_all(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run]
) -> None:
    run = in_draft(two_runs[1])
    config = make_config("features={kind: reference, reference_size: 1000}")
    result = features(config, spark, run)
    assert "all of 60 users, because features.reference_size is 1,000" in result.message
    found = opened(run, result.facts)
    users = {row["user_id"]: row["user"] for row in run.read(USERS).collect()}
    for user_id, user in users.items():
        assert len(found.reviewers(user, user_id)) == 59


def test_a_group_without_users_is_an_error(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run]
) -> None:
    config = make_config("features={kind: reference, reference_min: 5000}")
    words = "0 users with 5000 to any number of ratings: too few.*change features.reference_min"
    with pytest.raises(InputDataError, match=words) as caught:
        features(config, spark, two_runs[1])
    assert caught.value.exit_code == 3


def test_vectors_of_ones_own(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run], vectors: Path
) -> None:
    run = two_runs[1]
    given = {row["item_id"]: row["features"] for row in pq.read_table(vectors).to_pylist()}
    items = run.read(ITEMS).orderBy("item").collect()
    raw = {row["item"]: given[row["item_id"]] for row in items if row["item_id"] in given}
    missing = [row["item"] for row in items if row["item"] not in raw]
    for scale in ("standard", "none"):
        settings = f"features={{kind: given, given: {vectors}, given_scale: {scale}}}"
        run = in_draft(two_runs[1])
        result = given_features(make_config(settings), spark, run)
        found = opened(run, result.facts)
        assert found.matrix.shape == (len(items), 4)
        expected = np.array(list(raw.values()), dtype=np.float32).astype(float)
        if scale == "standard":
            expected = (expected - expected.mean(axis=0)) / expected.std(axis=0)
        assert_allclose(found.matrix[list(raw)], expected, atol=1e-6)
        assert_array_equal(found.matrix[missing], 0.0)
        assert isinstance(result.facts, GivenFacts)
        assert result.facts.items_without == len(missing) > 0
        assert f"{len(missing):,} items without: zeros" in result.message
        assert result.facts.squared_radius == (found.matrix.astype(float) ** 2).sum(axis=1).max()
        written = spark.read.parquet(run.draft_path("item_features")).orderBy("item").collect()
        assert_array_equal([row["features"] for row in written], found.matrix)
        assert_array_equal([row["offset"] for row in written], found.offset)
        assert np.abs(found.offset).max() > 0.0


def test_another_file_of_vectors_is_another_input(
    spark: SparkSession, make_config: MakeConfig, two_runs: tuple[Run, Run], vectors: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    run = two_runs[1]
    Path(folder_of(run, "manifest/features.json")).unlink(missing_ok=True)
    own = Path(shutil.copy(vectors, tmp_path / "own.parquet"))
    base = run_config(make_config, run)
    config = dataclasses.replace(base, features=FeaturesConfig(kind="given", given=str(own)))
    run_stages([STAGES["features"]], config, spark, run)
    table = pq.read_table(own)
    pq.write_table(table.slice(0, 300), own)
    with pytest.raises(ConfigError, match="other input"):
        run_stages([STAGES["features"]], config, spark, run)
    own.write_text("item_id,features\n")
    with pytest.raises(InputDataError, match="features.given: .*own.parquet is not a Parquet file"):
        features(config, spark, run)
    own.unlink()
    with pytest.raises(ConfigError, match="features.given: .*own.parquet: no such file"):
        run_stages([STAGES["features"]], config, spark, run)


def run_config(make_config: MakeConfig, run: Run) -> Config:
    root, _, run_id = folder_of(run, "").rstrip("/").rpartition("/runs/run_id=")
    return dataclasses.replace(make_config(), store=root, run_id=run_id)


def letor_lines(queries: int = 12) -> list[str]:
    """Return judged documents whose label is high where feature 1 is, low where feature 2 is."""
    rng = np.random.default_rng(1)
    lines = []
    for query in range(queries):
        for document in range(int(rng.integers(16, 25))):
            x = rng.normal(size=3) * [1, 50, 1]
            label = int(np.clip(round(2 + x[0] - x[1] / 50 + 0.2 * rng.normal()), 0, 4))
            named = f" #docid = D{document}" if query % 2 else ""
            lines.append(f"{label} qid:{query} 1:{x[0]:.4f} 2:{x[1]:.4f} 3:{x[2]:.4f}{named}\n")
    return lines


@pytest.mark.slow
def test_a_letor_file_from_ingest_to_evaluate(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    lines = letor_lines()
    for name, part in (("train.txt", lines[::2]), ("vali.txt", lines[1::2])):
        (tmp_path / name).write_text("".join(part))
    config = make_config(
        f"input.path={tmp_path}", "input.format=letor", "features.kind=given",
        "prepare.buckets=2", "train.learners=[{params: {C: 100}}]",
    )  # fmt: skip
    run = run_until(spark, config, "evaluate")
    # half of the queries name no document: every line is one nevertheless
    assert (run.record("ingest") or {})["tables"]["ratings"] == len(lines)
    found = run.facts(GivenFacts)
    assert (found.width, found.items_without) == (3, 0)
    matrix = opened(run, found).matrix
    assert_allclose(matrix.mean(axis=0), 0.0, atol=1e-6)
    assert_allclose(matrix.std(axis=0), 1.0, rtol=1e-6)
    assert {row["offset"] for row in run.read(ITEM_FEATURES).collect()} == {0.0}
    means = (run.record("evaluate") or {})["facts"]["means"]
    assert means["mprank"]["msd"] < 0.25 * means["constant"]["msd"]
    assert means["mprank"]["misranking"] < 0.1


def test_letor_with_its_path_and_format_alone_learns_from_its_vectors(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "train.txt").write_text("".join(letor_lines()))
    sets = [f"store={tmp_path}", f"input.path={tmp_path / 'train.txt'}", "input.format=letor"]
    run = run_until(spark, load_config(None, [*sets, "prepare.buckets=2"]), "evaluate")
    means = (run.record("evaluate") or {})["facts"]["means"]
    assert means["mprank_linear"]["msd"] < 0.95 * means["constant"]["msd"]
    assert means["mprank_linear"]["misranking"] < 0.2


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (("features={kind: given}",), "'given' needs feature vectors: name a Parquet file"),
        (("features={given: x.parquet}",), "is not read by features.kind 'panel'"),
        (("features={kind: given, given: ' '}",), "features.given: must not be empty"),
        (("features={reference_min: 9, reference_max: 8}",), "9 must be at most .*reference_max 8"),
        (("features={kind: referenc}",), "did you mean 'reference'?"),
        (("features.reference_pool=1",), "features.reference_pool: must be at least 2"),
        (
            ("features={kind: offset}", "train.learners=[{grid: {C: [1, 2]}}]"),
            "train.learners[0].grid: without features there is nothing to choose",
        ),
    ],
)
def test_wrong_settings_are_told(
    make_config: MakeConfig, sets: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=re.sub(r"([?\[\]])", r"\\\1", words)):
        make_config(*sets)


def test_every_key_decides_some_kind() -> None:
    keys = {field.name for field in dataclasses.fields(FeaturesConfig)}
    assert {name for names in _DECIDING.values() for name in names} == keys - {"kind", "kept_from"}


def test_the_papers_configuration_is_valid() -> None:
    path = ROOT / "conf" / "reference.yaml"
    config = load_config(path)
    settings = config.features
    assert (settings.kind, settings.reference_size) == ("reference", 300)
    assert (settings.reference_min, settings.reference_max) == (20, 40)
    assert (config.train.targets_min, config.train.targets_max) == (50, 300)
    assert [entry.learner for entry in config.train.learners] == ["mprank", "svrank"]
