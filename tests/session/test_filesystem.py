"""The operations that publishing rests on: all at once or not at all, also among threads."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_rank.session.filesystem import Filesystem


@pytest.fixture
def files(spark: SparkSession) -> Filesystem:
    return Filesystem(spark)


@pytest.mark.parametrize("local", [True, False])
def test_a_file_is_replaced_and_nothing_is_left_over(
    files: Filesystem, tmp_path: Path, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not local:  # as on HDFS and others: by Hadoop's own rename
        monkeypatch.setattr("spark_rank.session.filesystem._is_local", lambda fs: False)
    for text in ("first", "second", "dritte ä"):
        files.write_text(f"{tmp_path}/new/note.json", text)
        assert files.read_text(f"{tmp_path}/new/note.json") == text
    left = {name for name in files.names(f"{tmp_path}/new") if not name.endswith(".crc")}
    assert left == {"note.json"}


@pytest.mark.parametrize("local", [True, False])
def test_a_file_that_is_there_is_not_created(
    files: Filesystem, tmp_path: Path, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not local:
        monkeypatch.setattr("spark_rank.session.filesystem._is_local", lambda fs: False)
    assert files.create_text(f"{tmp_path}/new/note", "first")
    assert not files.create_text(f"{tmp_path}/new/note", "second")
    assert files.read_text(f"{tmp_path}/new/note") == "first"


def test_without_links_it_is_the_same(
    files: Filesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files._java("java.nio.file.Files")

    def refused(link: object, source: Any) -> None:
        real.createLink(link, source.resolveSibling("what is not there"))

    links = SimpleNamespace(createLink=refused, copy=real.copy)
    monkeypatch.setitem(files._classes, "java.nio.file.Files", links)
    assert files.create_text(f"{tmp_path}/note", "first")
    assert not files.create_text(f"{tmp_path}/note", "second")
    assert (tmp_path / "note").read_text() == "first"
    assert os.listdir(tmp_path) == ["note"]


def test_a_full_disk_leaves_nothing_half(
    files: Filesystem, small_disk: Callable[[str], Path]
) -> None:
    disk = small_disk("8k")
    (disk / "note").write_text("old")
    (disk / "ballast").write_bytes(bytes(4096))
    for write in (files.create_text, files.write_text):
        with pytest.raises(Py4JJavaError, match="No space left on device"):
            write(f"{disk}/{write.__name__}", "text")
    with pytest.raises(Py4JJavaError, match="No space left on device"):
        files.write_text(f"{disk}/note", "new")
    assert sorted(os.listdir(disk)) == ["ballast", "note"]
    assert (disk / "note").read_text() == "old"
    (disk / "ballast").unlink()
    assert files.create_text(f"{disk}/create_text", "text")
    assert os.listdir(disk).count("create_text") == 1


def test_one_of_many_creates_a_file(files: Filesystem, tmp_path: Path) -> None:
    outcomes: dict[int, bool] = {}

    def create(number: int) -> None:
        outcomes[number] = files.create_text(f"{tmp_path}/one", str(number))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, won in outcomes.items() if won]
    assert len(outcomes) == 8
    assert files.read_text(f"{tmp_path}/one") == str(winner)


def test_a_folder_moves_whole_and_into_nothing(files: Filesystem, tmp_path: Path) -> None:
    files.write_text(f"{tmp_path}/from/a", "a")
    files.move(f"{tmp_path}/from", f"{tmp_path}/deep/down/to")
    assert files.names(f"{tmp_path}/deep/down/to") == ["a"]
    assert files.names(f"{tmp_path}/from") == []
    files.write_text(f"{tmp_path}/from/b", "b")
    with pytest.raises(FileExistsError, match="exists already"):
        files.move(f"{tmp_path}/from", f"{tmp_path}/deep/down/to")
    assert files.names(f"{tmp_path}/deep/down/to") == ["a"]


def test_what_is_below_a_folder_is_listed_without_hidden_files(
    files: Filesystem, tmp_path: Path
) -> None:
    for name in ("b=1/x [y].txt", "b=1/_hidden", "_drafts/a", ".c", "a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    found = [info.path.removeprefix(f"file:{tmp_path}/") for info in files.below(str(tmp_path))]
    assert found == ["a", "b=1/x [y].txt"]
    assert files.below(f"{tmp_path}/nothing") == []


def test_a_glob_passes_over_what_spark_hides(files: Filesystem, tmp_path: Path) -> None:
    parts = (
        "_temporary/0/part-1.csv",
        "_SUCCESS",
        ".x.crc",
        "a/part-1.csv",
        "a/_SUCCESS",
        "b_.csv",
    )
    folder = tmp_path / "_own"
    for name in parts:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")

    def found(pattern: str) -> list[str]:
        return [info.path.split("/_own/")[1] for info in files.glob(f"{folder}/{pattern}")]

    assert found("*") == ["a/part-1.csv", "b_.csv"] == found("")
    assert found("*/*") == ["a/part-1.csv"] == found("*/*/*") + found("*/part*")
    assert found("b*.csv") == ["b_.csv"]
    # what the pattern itself names is meant
    assert found("_temporary/0/*") == ["_temporary/0/part-1.csv"]
    assert found("_S*") == found("_SUCCESS") == ["_SUCCESS"]


def test_checksums_are_those_of_everybody(files: Filesystem, tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "data").write_bytes(content)
    assert files.sha256(f"{tmp_path}/data") == hashlib.sha256(content).hexdigest()
