"""A run as `refit` and the lists see it: features and models from all ratings of every user.

What a stage reads and writes under the names of the measured tables goes to tables of their own
here, so that the same functions learn, keep, list and explain.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.reader.recorded import REFIT, Record, as_refitted, has_refitted, is_refitted
from spark_rank.records.facts import as_record
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import BLOCKS, FINAL_TABLES, ITEM_COUNTS

FEATURE_FILES = "feature_files"
_NAMES = {FEATURE_FILES: f"final_{FEATURE_FILES}"} | {
    name: contract.table for name, contract in FINAL_TABLES.items()
}


class FinalRun(Run):
    """A run whose features and models are those from all ratings.

    While `refit` is in progress, `features` is what it has made of them so far.
    """

    all_ratings = True

    def __init__(self, run: Run, features: StageResult | None = None) -> None:
        self.__dict__.update(run.__dict__)
        self._features = features

    def own(self, contract: Contract) -> Contract:
        """Return the contract under which a table is written and read here."""
        return FINAL_TABLES.get(contract.table, contract)

    def path(self, name: str) -> str:
        """Return where a published table or file lives; of features in progress, their draft."""
        if self._features is not None and name.startswith(f"{FEATURE_FILES}/"):
            return self.draft_path(name)
        return super().path(_final(name))

    def draft_path(self, name: str) -> str:
        """Return where the stage in progress writes a table or file."""
        return super().draft_path(_final(name))

    def write(
        self, contract: Contract, frame: DataFrame, partition_by: tuple[str, ...] = ()
    ) -> int:
        """Write a table under its contract; return its rows."""
        return super().write(self.own(contract), frame, partition_by)

    def written(self, contract: Contract) -> DataFrame:
        """Return a table that the stage in progress has written."""
        return super().written(self.own(contract))

    def has(self, contract: Contract) -> bool:
        """Tell whether a finished stage has written the table."""
        return super().has(self.own(contract))

    def read(self, contract: Contract) -> DataFrame:
        """Return a recorded table, or one of the features in progress; all ratings are training."""
        if self._features is not None and contract.table in self._features.tables:
            return self.written(contract)
        frame = super().read(self.own(contract))
        if contract.table == BLOCKS.table:
            return frame.withColumn("n_train", F.size("items"))
        if contract.table == ITEM_COUNTS.table:
            return frame.withColumn("n_train", F.col("n"))
        return frame

    def range_of(self, contract: Contract, column: str) -> tuple[float, float]:
        """Return the least and greatest number in a column of a recorded table; 0 without any."""
        return super().range_of(self.own(contract), column)

    def read_files(self, contract: Contract, files: Sequence[str]) -> DataFrame:
        """Return some files of a recorded table, by their paths from its folder."""
        return super().read_files(self.own(contract), files)

    def record(self, stage: str) -> Record | None:
        """Return a finished stage's record; of features and models what `refit` tells of them."""
        found = super().record(stage)
        if found is None or stage not in ("features", "train"):
            return found
        if stage == "features" and self._features is not None:
            return {**found, "fingerprint": "", "facts": as_record(self._features.facts)}
        told = super().record(REFIT)
        if told is None:
            return found
        return as_refitted(stage, found, told)


def refitted_run(run: Run, learner: str) -> Run:
    """Return the run with features and models from all ratings, if it has such of the learner."""
    return FinalRun(run) if has_refitted(run, learner) else run


def refit_input(run: Run) -> dict[str, str]:
    """Return what tells the refitted models from others; nothing without them."""
    return {REFIT: (run.record(REFIT) or {})["fingerprint"]} if is_refitted(run) else {}


def _final(name: str) -> str:
    first, slash, rest = name.partition("/")
    return f"{_NAMES.get(first, first)}{slash}{rest}"
