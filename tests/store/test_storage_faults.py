"""What a trace says of disks and files becomes one line; what is something else stays."""

from __future__ import annotations

import errno
import os

import pytest

from spark_rank.errors import ContractError, SparkRankError, StorageError
from spark_rank.store.storage_faults import storage_faults_told

TRACE = """An error occurred while calling o75.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.Somewhere(Some.scala:1)
Caused by: java.io.IOException: {}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    ("said", "told", "kind"),
    [
        ("No space left on device", "a disk is full (java.io.IOException: No space", StorageError),
        ("/s/x: Read-only file system", "IOException: /s/x: Read-only", StorageError),
        ("/s/x (Permission denied)", "IOException: /s/x (Permission denied)", StorageError),
        (
            "FeatureFileError: feature file m.npy does not match its checksum",
            "feature file m.npy does not match its checksum: if `spark-rank runs verify`",
            ContractError,
        ),
    ],
)
def test_the_fault_of_a_disk_is_one_line(said: str, told: str, kind: type[SparkRankError]) -> None:
    with pytest.raises(kind) as caught, storage_faults_told("/s"):
        raise OSError(TRACE.format(said))
    assert told in str(caught.value)
    assert "same command again" in str(caught.value) or "start the command again" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


def test_what_the_jvm_said_is_quoted_without_its_head() -> None:
    said = (
        "An error occurred while calling o9.create.\n: java.io.IOException: No space left on device"
    )
    with pytest.raises(StorageError) as caught, storage_faults_told("/s"):
        raise OSError(said)
    assert "full (java.io.IOException: No space left on device): free space" in str(caught.value)


def test_faults_of_python_itself_are_known() -> None:
    with pytest.raises(StorageError, match="a disk is full"), storage_faults_told("/s"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/s/x")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(FileExistsError, match="is there already"), storage_faults_told("/s"):
        raise FileExistsError("/s/x: is there already")
