"""Disks that are full or closed, feature files that are gone: one line, and then it goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.driver import Driver, Outcome, Tables

# several commands, each with a bound of its own
pytestmark = pytest.mark.timeout(3000)


@pytest.fixture
def mounted(small_disk: Callable[[str], Path]) -> Path:
    """Return a disk of our own."""
    return small_disk("64m")


def assert_told(found: Outcome, code: int, words: str) -> None:
    assert found.code == code, found.said
    assert found.last_line.startswith("spark-rank: "), found.said
    assert words in found.last_line
    assert "spark_rank/cli.py" not in found.said


def assert_nothing_half(driver: Driver, run_id: str, expected: Tables) -> None:
    for name, seen in driver.tables(run_id).items():
        assert seen == expected[name], f"{name} is not whole"


@pytest.mark.slow
@pytest.mark.fault(
    "the disk of the store is full",
    "exit code 1, one line; with room again the same command goes on, tables as undisturbed",
)
def test_a_full_disk_is_one_line(
    undisturbed: Driver, expected: Tables, mounted: Path, tmp_path: Path
) -> None:
    driver = Driver(tmp_path, mounted / "store")
    driver.copy_before_train(undisturbed)
    ballast = mounted / "ballast"
    for room in (8, 48, 160):  # KB: no room for a wave, for some, for all of `train`
        ballast.unlink(missing_ok=True)
        free = shutil.disk_usage(mounted).free
        ballast.write_bytes(bytes(max(0, free - room * 1024)))
        found = driver.outcome("undisturbed", "--spark", "spark.eventLog.enabled=false")
        assert_told(found, 1, "a disk is full")
        assert_nothing_half(driver, "undisturbed", expected)
    ballast.unlink()
    driver.finish("undisturbed")
    assert driver.tables("undisturbed") == expected
    run = driver.run("undisturbed")
    assert not list(run.rglob(".*.part"))
    assert not list((run / "_drafts").iterdir())


@pytest.mark.slow
@pytest.mark.fault(
    "the store is on a disk that has become read-only",
    "exit code 1, one line; once it is writable the same command goes on, tables as undisturbed",
)
def test_a_read_only_store_is_one_line(
    undisturbed: Driver, expected: Tables, mounted: Path, tmp_path: Path
) -> None:
    driver = Driver(tmp_path, mounted / "store")
    driver.copy_before_train(undisturbed)
    remount(mounted, "ro")
    assert_told(driver.outcome("undisturbed"), 1, "cannot be written")
    assert_told(driver.outcome("new"), 1, "cannot be written")
    remount(mounted, "rw")
    driver.finish("undisturbed")
    assert driver.tables("undisturbed") == expected


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.slow
@pytest.mark.fault(
    "a feature file of the run is gone, or truncated",
    "exit code 3, one line that names it and what to delete; then the same command makes it anew, "
    "tables as undisturbed",
)
@pytest.mark.parametrize(
    ("damage", "words"),
    [(Path.unlink, "it does not exist"), (truncate, "does not match its checksum")],
)
def test_a_damaged_feature_file_is_named(
    undisturbed: Driver,
    expected: Tables,
    tmp_path: Path,
    damage: Callable[[Path], None],
    words: str,
) -> None:
    driver = Driver(tmp_path)
    driver.copy_before_train(undisturbed)
    run = driver.run("undisturbed")
    (matrix,) = (run / "feature_files").glob("matrix-*.npy")
    damage(matrix)
    (run / "feature_files" / f".{matrix.name}.crc").unlink(missing_ok=True)
    found = driver.outcome("undisturbed")
    assert_told(found, 3, words)
    assert matrix.name in found.last_line
    assert "manifest/features.json" in found.last_line
    assert_nothing_half(driver, "undisturbed", expected)
    (run / "manifest" / "features.json").unlink()
    driver.finish("undisturbed")
    assert driver.tables("undisturbed") == expected
