"""Which setting wins."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_rank.session.session import (
    COLLECTOR,
    DEFAULTS,
    LOCAL_DEFAULTS,
    launch_settings,
    on_this_machine,
    overruled,
    session_settings,
    with_collector,
)


def test_spark_submit_wins_over_the_configuration_over_the_defaults() -> None:
    name = "spark.sql.shuffle.partitions"
    assert session_settings({}, {})[name] == DEFAULTS[name]
    assert session_settings({name: "5"}, {})[name] == "5"
    assert session_settings({name: "5"}, {name: "6"})[name] == "6"


def test_only_local_masters_are_tied_to_this_machine() -> None:
    local = session_settings({}, {})
    assert LOCAL_DEFAULTS.items() <= local.items()
    remote = session_settings({}, {"spark.master": "spark://host:7077"})
    assert not LOCAL_DEFAULTS.keys() & remote.keys()
    assert session_settings({"spark.driver.memory": "9g"}, {})["spark.driver.memory"] == "9g"


def test_the_session_has_its_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.validateSchema.enabled") == "true"


def test_what_spark_submit_overrules_is_named() -> None:
    configured = {"spark.master": "local[2]", "spark.a": "1", "spark.b": "2"}
    submitted = {"spark.master": "local[*]", "spark.a": "1", "spark.c": "3"}
    assert overruled(configured, submitted) == ["spark.master"]


def test_the_command_line_of_the_jvm_shows_no_secret() -> None:
    settings = session_settings({"spark.hadoop.fs.s3a.secret.key": "x", "spark.a": "b"}, {})
    started = launch_settings(settings)
    assert "spark.hadoop.fs.s3a.secret.key" not in started
    assert started["spark.a"] == "b"
    assert started["spark.driver.memory"] == settings["spark.driver.memory"]


def test_files_are_looked_at_from_here_whatever_the_cluster() -> None:
    configured = {"spark.master": "k8s://https://a:443", "spark.kubernetes.namespace": "n",
                  "spark.driver.host": "a.b.svc", "spark.executor.memory": "64g",
                  "spark.hadoop.fs.s3a.endpoint": "e", "spark.driver.memory": "2g"}  # fmt: skip
    assert on_this_machine(configured) == {
        "spark.master": "local[*]", "spark.hadoop.fs.s3a.endpoint": "e", "spark.driver.memory": "2g"
    }  # fmt: skip


def test_a_local_jvm_is_told_of_one_collector() -> None:
    local, name = {"spark.master": "local[2]"}, "spark.driver.extraJavaOptions"
    assert with_collector(local, {}) == COLLECTOR
    assert with_collector({**local, name: "-Xss4m"}, {"HOME": "x"}) == f"-Xss4m {COLLECTOR}"
    strings = "-XX:+UseStringDeduplication"
    assert with_collector({**local, name: strings}, {}) == f"{strings} {COLLECTOR}"
    assert with_collector({**local, name: "-XX:+UseZGC"}, {}) == "-XX:+UseZGC"
    assert with_collector(local, {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}) == ""
    assert with_collector({"spark.master": "yarn", name: "-Xss4m"}, {}) == "-Xss4m"
