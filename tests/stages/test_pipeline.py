"""The whole way: raw ratings to models, metrics, summary and report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError, InputDataError, TooManyFailuresError
from spark_rank.learners import MPRank
from spark_rank.metrics import mean_squared_difference
from spark_rank.records.data import IngestFacts, PrepareFacts
from spark_rank.records.facts import Facts, as_record
from spark_rank.records.features import FeatureFacts
from spark_rank.records.models import RefitFacts, TrainFacts
from spark_rank.records.results import AggregateFacts, EvaluateFacts, RankFacts, RecommendFacts
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.execution import run_summary
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import TABLES
from tests.predicted import predicted

MakeConfig = Callable[..., Config]
DEFAULT = Path(__file__).parents[2] / "conf" / "default.yaml"
RunPipeline = Callable[..., Run]
BEHIND_INGEST = ("prepare", "features", "train", "evaluate", "rank", "aggregate", "report")


def local(run: Run, name: str) -> str:
    return run.path(name).removeprefix("file:")


def rows(run: Run, table: str, order: str) -> list[tuple[Any, ...]]:
    return table_of(run, table).order(order).fetchall()


def table_of(run: Run, table: str) -> duckdb.DuckDBPyRelation:
    """Read as a consumer does; the run id, which DuckDB takes from the path, is left out."""
    files = f"{local(run, table)}/**/*.parquet"
    return duckdb.sql(f"select * exclude (run_id) from read_parquet('{files}')")


# written empty, or only for certain inputs and by commands of their own
SPECIAL = {
    "quarantine", "titles", "item_content", "shown_metrics", "given_features", "reviewer_ratings",
    "final_reviewer_ratings", "tuning", "theorems", "predictions",
    "experiment_results", "experiment_summary", "experiment_claims", "changes", "list_metrics",
    "ensemble_models", "ensemble_curve", "ensemble_metrics", "ensemble_diversity",
}  # fmt: skip


@pytest.mark.parametrize("table", [name for name in TABLES if name not in SPECIAL])
def test_duckdb_reads_every_table(finished: Run, table: str) -> None:
    found = table_of(finished, table)
    names = [c.name for c in TABLES[table].columns]
    assert [c for c in found.columns if c != "bucket"] == [
        c for c in [*names, "schema_version"] if c != "bucket"
    ]
    assert len(found.fetchall()) > 0


def test_duckdb_reads_an_empty_quarantine(finished: Run) -> None:
    found = table_of(finished, "quarantine")
    assert found.columns == ["source", "line", "raw", "reason", "schema_version"]
    assert found.fetchall() == []


def test_pinned_columns_and_original_ids(finished: Run) -> None:
    found = duckdb.sql(f"select * from read_parquet('{local(finished, 'metrics')}/*.parquet')")
    pinned = ["user_id", "learner", "status", "reason", "n_train", "n_test", "msd", "m1d",
              "misranking"]  # fmt: skip
    assert set(pinned) <= set(found.columns)
    users = {row[0] for row in duckdb.sql("select distinct user_id from found").fetchall()}
    assert users == {str(u) for u in range(1, 61)}


def test_every_user_is_there_once_per_learner(finished: Run) -> None:
    for table in ("models", "metrics"):
        path = f"{local(finished, table)}/*.parquet"
        counts = duckdb.sql(
            f"select learner, count(*), count(distinct user_id) from '{path}' group by 1 order by 1"
        ).fetchall()
        assert counts == [(name, 60, 60) for name in ("constant", "item_offset", "linear", "rbf")]


def test_nothing_is_lost_between_the_rooms(finished: Run) -> None:
    records = finished.records()
    ingest, prepare = records["ingest"], records["prepare"]
    total = ingest["tables"]["ratings"] + ingest["tables"]["quarantine"]
    assert total == ingest["facts"]["rows_in"] == records["synthesize"]["tables"]["synthetic"]
    facts = prepare["facts"]
    assert facts["train_ratings"] + facts["test_ratings"] == ingest["tables"]["ratings"]
    assert list(records) == sorted(stage.name for stage in pipeline(load_config(DEFAULT)))


@pytest.mark.parametrize(
    "kind",
    [IngestFacts, PrepareFacts, FeatureFacts, TrainFacts, EvaluateFacts, RankFacts, AggregateFacts,
     RefitFacts, RecommendFacts],
)  # fmt: skip
def test_what_stages_found_out_is_typed(finished: Run, kind: type[Facts]) -> None:
    record = finished.record(kind.stage)
    assert record is not None
    assert as_record(finished.facts(kind)) == record["facts"]


def test_the_learners_beat_the_constant(finished: Run) -> None:
    means = finished.record("evaluate")["facts"]["means"]  # type: ignore[index]
    assert means["linear"]["msd"] < means["constant"]["msd"]
    assert means["rbf"]["msd"] < means["constant"]["msd"]
    assert means["rbf"]["misranking"] < 0.5


def test_metrics_are_those_of_a_model_learned_on_plain_arrays(finished: Run) -> None:
    """An independent path: Parquet, DuckDB, NumPy, the learner; no worker code."""
    features = {
        item: (offset, np.array(vector, dtype=float))
        for item, offset, vector in duckdb.sql(
            f"select item, \"offset\", features from '{local(finished, 'item_features')}/*.parquet'"
        ).fetchall()
    }
    members = dict(
        duckdb.sql(
            f"select user_id, feature from '{local(finished, 'panel')}/*.parquet'"
        ).fetchall()
    )
    blocks = duckdb.sql(
        "select user_id, items, ratings, n_train "
        f"from read_parquet('{local(finished, 'blocks')}/**/*.parquet') order by len(items) desc"
    ).fetchall()
    metrics = {
        (user, learner): msd
        for user, learner, msd in duckdb.sql(
            f"select user_id, learner, msd from '{local(finished, 'metrics')}/*.parquet'"
        ).fetchall()
    }
    for user, items, ratings, n_train in blocks[:10] + blocks[30:35]:
        offset = np.array([features[i][0] for i in items])
        X = np.array([features[i][1] for i in items])
        if user in members:
            X[:, members[user]] = 0.0
        y = np.array(ratings)
        for name, model in (("linear", MPRank(0.1)), ("rbf", MPRank(10.0, kernel="rbf"))):
            model.fit(X[:n_train], y[:n_train], offset=offset[:n_train])
            scores = model.decision_function(X[n_train:], offset=offset[n_train:])
            expected = mean_squared_difference(scores, y[n_train:])
            assert_allclose(metrics[user, name], expected, rtol=1e-5)


def test_duckdb_alone_reproduces_a_score(finished: Run) -> None:
    """Weights, features and offset are all that docs/guide/read-tables.md asks for."""
    query = f"""
        with m as (select * from '{local(finished, "models")}/*.parquet'
                   where learner = 'linear' and status = 'learned' and n_test > 3
                   order by user_id limit 5),
             b as (select user_id, unnest(items[n_train + 1:]) as item,
                          generate_subscripts(items[n_train + 1:], 1) as position
                   from read_parquet('{local(finished, "blocks")}/**/*.parquet'))
        select m.user_id, b.position,
               m.intercept + f."offset"
                 + list_dot_product(m.weights, f.features::float[])
        from m join b using (user_id)
        join '{local(finished, "item_features")}/*.parquet' f using (item)
    """
    rows = duckdb.sql(query).fetchall()
    assert len(rows) > 15
    found = predicted(finished)
    for user, position, reproduced in rows:
        score = found[user, "linear"].scores[position - 1]
        assert score == pytest.approx(reproduced, abs=1e-5)


@pytest.mark.parametrize("partitions", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_the_number_of_partitions_changes_no_value(
    spark: SparkSession,
    finished: Run,
    make_config: MakeConfig,
    run_pipeline: RunPipeline,
    partitions: int,
) -> None:
    learners = "[{name: linear, params: {C: 0.1}}, {name: rbf, params: {C: 10, kernel: rbf}}]"
    changed = {
        "spark.sql.shuffle.partitions": partitions,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 3 * partitions,
        # small files are packed into few tasks unless told otherwise
        "spark.sql.files.minPartitionNum": partitions,
    }
    with ExitStack() as settings:
        for name, value in changed.items():
            settings.enter_context(runtime_setting(spark, name, str(value)))
        buckets = f"prepare.buckets={partitions}"
        run = run_pipeline(make_config(f"train.learners={learners}", buckets,
                                       "recommend.in_pipeline=true"))  # fmt: skip
    for table, order in (("models", "user_id, learner"), ("metrics", "user_id, learner"),
                         ("summary", "learner, metric, user_group"),
                         ("comparison", "learner, rival, metric, user_group"),
                         ("roc", "learner, user_group, false_positive_rate"),
                         ("bounds", "learner, bound, user_group"), ("rankings", "user_id"),
                         ("aggregate", "position"), ("majorities", "item_id, over_item_id"),
                         ("item_features", "item"),
                         ("recommendations", "user_id, list, position")):  # fmt: skip
        ours, reference = (
            # the buckets are what changed
            without_bucket(table_of(one, table)).order(order).fetchall()
            for one in (run, finished)
        )
        assert repr(ours) == repr(reference), table
    for one in (run, finished):
        same = table_of(one, "models").join(
            table_of(one, "blocks").select("user_id, bucket as of_block"), "user_id"
        )
        assert set(same.select("bucket = of_block").fetchall()) == {(True,)}


def without_bucket(table: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    return table.select("* exclude (bucket)") if "bucket" in table.columns else table


def test_the_same_command_again_does_nothing(
    spark: SparkSession, finished: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: r["started"] for name, r in finished.records().items()}
    learners = "[{name: linear, params: {C: 0.1}}, {name: rbf, params: {C: 10, kernel: rbf}}]"
    store = finished.root.removeprefix("file:").split("/runs/")[0]
    config = load_config(
        Path(store).parent / "test.yaml", [f"store={store}", f"train.learners={learners}"]
    )
    run_stages(pipeline(config), config, spark, finished)
    assert {name: r["started"] for name, r in finished.records().items()} == before
    assert capsys.readouterr().err.count("already done") == len(pipeline(config))


def test_the_closing_summary_names_everything(finished: Run) -> None:
    text = run_summary(finished.records(), finished)
    for word in ("constant", "item_offset", "linear", "rbf", "MSD", "M1D", "misranking", "learned",
                 "/models", "/metrics", "/summary", "report.html"):  # fmt: skip
        assert word in text


def test_the_report_stands_on_its_own(finished: Run) -> None:
    html = Path(local(finished, "report/report.html")).read_text()
    assert html.count("<svg") == html.count('role="img" aria-label=') >= 4
    for outside in ("http://", "https://", "<script", "<link", "@import"):
        cleaned = html.replace("http://www.w3.org", "").replace("https://matplotlib.org", "")
        assert outside not in cleaned.replace("http://purl.org", "").replace(
            "http://creativecommons.org", ""
        )
    assert "item_offset" in html


def write_csv(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path


def test_quarantine_keeps_every_bad_row(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    good = [f"u{u},i{i},{(u * i) % 5 + 1}" for u in range(6) for i in range(7)]
    bad = ["u1,i1,oops", "u2,,3", "u3"]
    path = write_csv(tmp_path, [*good, *bad, "u1,i1,2"])
    config = make_config(f"input.path={path}", "input.format=csv", "input.max_bad_share=0.2")
    run = run_pipeline(config, without=BEHIND_INGEST)
    found = rows(run, "quarantine", "reason, raw")
    assert [(reason, raw, line) for _, line, raw, reason, _ in found] == [
        ("duplicate", "u1,i1,2", 47), ("malformed_row", "u3", 46), ("missing_item", "u2,,3", 45),
        ("unreadable_rating", "u1,i1,oops", 44),
    ]  # fmt: skip
    assert all(source.endswith("in.csv") for source, *_ in found)
    ingest = run.record("ingest") or {}
    assert ingest["facts"]["rows_in"] == 46 == ingest["tables"]["ratings"] + len(found)
    assert ingest["facts"]["quarantined_by_reason"]["duplicate"] == 1


def test_too_many_bad_rows_end_the_run_but_are_kept(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    path = write_csv(tmp_path, ["a,b,3", "a,c,x"])
    config = make_config(f"input.path={path}", "input.format=csv")
    with pytest.raises(InputDataError, match=r"1 of 2 rows are unusable.*max_bad_share 0.05"):
        run_pipeline(config)
    kept = list(Path(config.store).glob("runs/*/_drafts/ingest/*/quarantine/*.parquet"))
    assert duckdb.read_parquet([str(p) for p in kept]).fetchall()[0][2] == "a,c,x"
    assert not list(Path(config.store).glob("runs/*/manifest/*"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [([], "holds no rows"), (["a,b,x"], "no rating in 1 row ")],
)
def test_nothing_to_learn_from(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline, lines: list[str], words: str
) -> None:
    path = write_csv(tmp_path, lines)
    with pytest.raises(InputDataError, match=words):
        run_pipeline(make_config(f"input.path={path}", "input.format=csv"))


def test_an_empty_file_and_a_wrong_path(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(InputDataError, match="is empty"):
        run_pipeline(make_config(f"input.path={empty}", "input.format=csv"))
    with pytest.raises(ConfigError, match=r"input.path: .*nowhere.csv: no such file"):
        run_pipeline(make_config(f"input.path={tmp_path / 'nowhere.csv'}", "input.format=csv"))


def test_users_of_every_awkward_kind(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    lines = [f"u{u},i{i},{(u + i) % 5 + 1}" for u in range(8) for i in range(9)]
    lines += ["single,i1,4", *[f"equal,i{i},3" for i in range(9)], "pair,i1,2", "pair,i2,5"]
    config = make_config(f"input.path={write_csv(tmp_path, lines)}", "input.format=csv")
    run = run_pipeline(config, without=("rank", "aggregate", "report"))
    found = {
        (row[0], row[1]): row
        for row in duckdb.sql(
            "select user_id, learner, status, reason, n_train, n_test, msd, misranking "
            f"from '{local(run, 'metrics')}/*.parquet'"
        ).fetchall()
    }
    assert found["single", "mprank_linear"][2:] == (
        "fallback", "too_few_ratings", 1, 0, None, None,
    )  # fmt: skip
    assert found["equal", "mprank_linear"][2:6] == ("fallback", "equal_ratings", 5, 4)
    assert found["equal", "mprank_linear"][7] is None, "no pair of different ratings"
    assert found["pair", "mprank_linear"][2:6] == ("fallback", "too_few_ratings", 1, 1)
    assert found["u1", "mprank_linear"][2:4] == ("learned", None)


def test_too_many_failed_users_have_their_own_exit(
    make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    # a constant this large overflows for every user
    learners = "[{params: {C: 1e308, kernel: poly, degree: 200, coef0: 1e9}}]"
    config = make_config(f"train.learners={learners}")
    with pytest.raises(
        TooManyFailuresError, match=r"failed: numeric_failure.*max_failed_share"
    ) as e:
        run_pipeline(config)
    assert e.value.exit_code == 4


@pytest.mark.parametrize(
    "format_name",
    ["movielens-100k", *[pytest.param(n, marks=pytest.mark.slow) for n in ("movielens-dat", "csv")],
     "parquet"],
)  # fmt: skip
def test_generated_data_in_a_native_format_is_read_back(
    tmp_path: Path,
    make_config: MakeConfig,
    run_pipeline: RunPipeline,
    finished: Run,
    format_name: str,
) -> None:
    sets = [f"synthesize.format={format_name}", f"synthesize.path={tmp_path / 'made'}"]
    config = make_config(*sets)
    spark = finished.spark
    run = Run(spark, config.store, config.run_id)
    run_stages([STAGES["synthesize"], STAGES["ingest"]], config, spark, run)
    order = "user_id, item_id"
    query = (
        "select user_id, item_id, rating, timestamp from '{ratings}/*.parquet' "
        "join '{users}/*.parquet' using (user) join '{items}/*.parquet' using (item) order by "
    )
    ours, reference = (
        duckdb.sql(
            query.format(**{t: local(r, t) for t in ("ratings", "users", "items")}) + order
        ).fetchall()
        for r in (run, finished)
    )
    assert ours == reference
    second = Run(spark, config.store, "other")
    with pytest.raises(ConfigError, match="exists already"):
        run_stages([STAGES["synthesize"]], config, spark, second)


@pytest.mark.slow
def test_movielens_100k(
    data_file: Callable[[str], Path], make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    path = data_file("ml-100k/u.data")
    learners = "[{name: rbf, params: {C: 30, kernel: rbf}}]"
    run = run_pipeline(
        make_config(
            f"input.path={path}", "input.format=movielens-100k", f"train.learners={learners}",
            "features.panel_size=100", "recommend.in_pipeline=true",
        )
    )  # fmt: skip
    records = run.records()
    assert records["ingest"]["facts"]["rows_in"] == 100_000
    tables = records["ingest"]["tables"]
    assert tables["ratings"] + tables["quarantine"] == 100_000
    assert (tables["users"], tables["items"]) == (943, 1682)
    means = records["evaluate"]["facts"]["means"]
    assert means["rbf"]["msd"] < means["item_offset"]["msd"] < means["constant"]["msd"]
    written = {table for record in records.values() for table in record["tables"]}
    assert written == (TABLES.keys() - SPECIAL - {"synthetic"}) | {"quarantine"}
    for table in written:
        assert table_of(run, table).columns


@pytest.mark.slow
def test_absurd_ratings_and_scores_do_not_end_the_run(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    lines = [f"u{u},i{i},{(u + i) % 5 + 1}" for u in range(8) for i in range(12)]
    lines += ["u1,i99,1e12", *[f"u2,j{i},{1e6 if i % 2 else 1}" for i in range(9)]]
    store = tmp_path / "a store #%41"
    config = make_config(
        f"input.path={write_csv(tmp_path, lines)}", "input.format=csv", f"store={store}",
        "train.learners=[{params: {C: 1e300}}]", "train.max_failed_share=1.0",
    )  # fmt: skip
    run = run_pipeline(config)
    assert (run.record("ingest") or {})["facts"]["quarantined_by_reason"] == {
        "rating_out_of_range": 1
    }
    summary = {row[:3]: row[3:] for row in rows(run, "summary", "learner, metric, user_group")}
    assert summary["constant", "msd", "all"][1] > 1e9
    assert summary["constant", "misranking", "all"][0] == 8


def test_a_rating_given_twice_is_no_broken_feed(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    lines = [f"u{u},i{i},{(u + i) % 5 + 1}" for u in range(4) for i in range(6)]
    path = write_csv(tmp_path, [*lines, *lines])
    config = make_config(f"input.path={path}", "input.format=csv", "input.max_bad_share=0.0")
    run = run_pipeline(config, without=BEHIND_INGEST)
    tables = (run.record("ingest") or {})["tables"]
    assert (tables["ratings"], tables["quarantine"]) == (24, 24)


def test_a_hidden_file_is_named(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: RunPipeline
) -> None:
    path = tmp_path / "_ratings.csv"
    path.write_text("user,item,rating\nu,i,3\n")
    with pytest.raises(ConfigError, match=r"_ratings.csv: Spark ignores"):
        run_pipeline(make_config(f"input.path={path}", "input.format=csv"))


def test_each_bucket_of_blocks_is_one_file(finished: Run) -> None:
    folders = list(Path(local(finished, "blocks")).glob("bucket=*"))
    assert len(folders) == 3
    assert all(len(list(folder.glob("*.parquet"))) == 1 for folder in folders)


def test_training_has_a_task_per_bucket(finished: Run) -> None:
    # more buckets than cores; each task writes a file
    assert len(list(Path(local(finished, "models")).glob("*.parquet"))) == 3


def test_a_synthetic_data_set_broken_off_is_written_anew(
    tmp_path: Path, make_config: MakeConfig, spark: SparkSession
) -> None:
    made = tmp_path / "made"
    (made / "_temporary" / "0").mkdir(parents=True)
    config = make_config(f"synthesize.path={made}", "synthesize.format=csv")
    run_stages([STAGES["synthesize"]], config, spark, Run(spark, config.store, "x"))
    assert (made / "_SUCCESS").exists()
