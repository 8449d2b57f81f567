"""Commands that look at a local store start no JVM, and say the same as Spark's file systems."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.runs.users import Question, answer
from spark_rank.session.filesystem import Filesystem
from spark_rank.session.local_files import LocalFiles
from spark_rank.store.run import Run
from spark_rank.store.run_records import RunRecords

COMMANDS = (
    ("runs", "list"), ("runs", "show"), ("runs", "diff", "{run}", "{run}"), ("runs", "verify"),
    ("formats",), ("config",), ("plan",), ("explain", "--user", "7"),
    ("explain", "--user", "7", "--item", "1"), ("recommend", "--user", "7"),
)  # fmt: skip


@pytest.fixture
def store(finished: Run) -> str:
    return finished.root.removeprefix("file:").partition("/runs/")[0]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which every `java` is one that only leaves a mark."""
    java = folder / "bin/java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {folder}/java-was-started\nexit 1\n")
    java.chmod(0o755)
    path = f"{java.parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if "HADOOP" not in name}
    return kept | {"JAVA_HOME": str(folder), "PATH": path}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: "-".join(words[:2]))
def test_no_java_is_started(
    command: tuple[str, ...], store: str, finished: Run, tmp_path: Path
) -> None:
    words = [word.format(run=finished.run_id) for word in command]
    if command != ("formats",):
        words += ["--set", f"store={store}", f"run_id={finished.run_id}"]
    done = subprocess.run(
        [sys.executable, "-m", "spark_rank", *words], env=environment(tmp_path), check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not (tmp_path / "java-was-started").exists()


def test_a_stage_would_start_java(tmp_path: Path) -> None:
    words = ["synthesize", "--set", f"store={tmp_path / 'store'}"]
    done = subprocess.run(
        [sys.executable, "-m", "spark_rank", *words], env=environment(tmp_path), check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode != 0
    assert (tmp_path / "java-was-started").exists()


def test_one_users_list_is_that_of_the_table(store: str, finished: Run, tmp_path: Path) -> None:
    words = ["recommend", "--user", "7", "--count", "4", "--set", f"store={store}"]
    words.append(f"run_id={finished.run_id}")
    told = {
        form: subprocess.run(
            [sys.executable, "-m", "spark_rank", *words, "--format", form], check=True,
            capture_output=True, text=True, timeout=300,
        ).stdout
        for form in ("json", "text")
    }  # fmt: skip
    files = f"{finished.root.removeprefix('file:')}/recommendations/**/*.parquet"
    expected = duckdb.sql(
        f"""select item_id, score from '{files}'
            where user_id = '7' and list = 'top' order by position limit 4"""
    ).fetchall()
    assert [(row["item_id"], row["score"]) for row in json.loads(told["json"])] == expected
    lines = told["text"].splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        [str(place), item] for place, (item, _) in enumerate(expected, start=1)
    ]


def test_any_file_system_of_spark_explains_the_same(finished: Run) -> None:
    store = finished.root.partition("/runs/")[0]
    local = RunRecords(LocalFiles(), store, finished.run_id)
    assert local.root == finished.root
    asked = Question("7", learner="rbf")
    assert answer(Config(), local, asked) == answer(Config(), finished, asked)


@pytest.fixture
def tree(tmp_path: Path, spark: SparkSession) -> Path:
    """Return files as people and Spark leave them."""
    place = tmp_path / "a b"
    for name in ("x/1.csv", "x/2.csv", "y/3.txt", "_hidden/4.csv", "x/.5.csv", "x/_6", "[z]/7.csv"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f"{name} é\n" * 300)
    spark.range(50).write.parquet(str(place / "table"))
    return place


def test_local_files_are_as_spark_shows_them(tree: Path, spark: SparkSession) -> None:
    own, other = LocalFiles(), Filesystem(spark)
    paths = [str(path) for path in [tree, *sorted(tree.rglob("*")), tree / "nothing"]]
    for path in [*paths, *(f"file:{path}" for path in paths)]:
        assert own.exists(path) == other.exists(path)
        assert own.is_directory(path) == other.is_directory(path)
        assert own.qualified(path) == other.qualified(path)
        if not Path(path.removeprefix("file:")).is_file():
            assert own.names(path) == other.names(path)
        for hidden in (False, True):
            assert own.below(path, hidden=hidden) == other.below(path, hidden=hidden)
    for info in other.below(str(tree)):
        assert own.sha256(info.path) == other.sha256(info.path)
        assert own.head(info.path, 7) == other.head(info.path, 7)
        assert own.tail(info, 7) == other.tail(info, 7)
        assert own.tail(info, 10**6) == other.tail(info, 10**6)
    text = str(tree / "x/1.csv")
    assert own.read_text(text) == other.read_text(text)
    for files in (own, other):
        with pytest.raises(OSError, match="nothing"):
            files.read_text(str(tree / "nothing"))
    for glob in ("*", "x", "x/*.csv", "{x,y}/*", "?/[1-2].csv", "x/[^1].csv", "_hidden", "*/*",
                 "_hidden/*", "nothing*"):  # fmt: skip
        pattern = f"{tree}/{glob}"
        assert own.glob(pattern) == other.glob(pattern), glob


def test_local_files_are_written_as_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    for name, files in (("own", LocalFiles()), ("other", Filesystem(spark))):
        path = str(tmp_path / name / "deep/er.json")
        assert files.create_text(path, "first")
        assert not files.create_text(path, "second")
        assert files.read_text(path) == "first"
        files.write_text(path, "third")
        assert files.read_text(path) == "third"
        assert files.names(str(Path(path).parent)) == ["er.json"]
        files.delete(str(tmp_path / name))
        files.delete(str(tmp_path / name))
        assert not files.exists(path)


def test_a_flipped_bit_is_seen_in_a_file_and_in_its_checksums(tree: Path) -> None:
    files = LocalFiles()
    (info, *_) = files.below(str(tree / "table"))
    path = Path(info.path.removeprefix("file:"))
    sums = path.with_name(f".{path.name}.crc")
    for place in (path, sums):
        whole = place.read_bytes()
        for at in (0, len(whole) // 2, len(whole) - 1):
            place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(OSError, match=re.escape(sums.name[1:].removesuffix(".crc"))):
                files.sha256(info.path)
        place.write_bytes(whole)
    files.sha256(info.path)
