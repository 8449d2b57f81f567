"""A run as `refit` and the lists see it: features and models from all ratings of every user.

Reads and writes of the measured tables are redirected to final tables, so that the same functions
learn, keep, list and explain.
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
    """A run whose features and models are learned from all ratings.

    While `refit` is in progress, `features` is the result of its features.
    """

    all_ratings = True

    def __init__(self, run: Run, features: StageResult | None = None) -> None:
        self.__dict__.update(run.__dict__)
        self._features = features

    def own(self, contract: Contract) -> Contract:
        """Return the contract of the final table in place of a measured one."""
        return FINAL_TABLES.get(contract.table, contract)

    def path(self, name: str) -> str:
        """Return the path of a published table or file, or of the draft of features in progress."""
        if self._features is not None and name.startswith(f"{FEATURE_FILES}/"):
            return self.draft_path(name)
        return super().path(_final(name))

    def draft_path(self, name: str) -> str:
        """Return the path where the stage in progress writes a table or file."""
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
        """Return a recorded table, or one of the features in progress; no rating is held out."""
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
        """Return a finished stage's record; those of features and models are from `refit`."""
        measured = super().record(stage)
        if measured is None or stage not in ("features", "train"):
            return measured
        if stage == "features" and self._features is not None:
            return {**measured, "fingerprint": "", "facts": as_record(self._features.facts)}
        refitted = super().record(REFIT)
        if refitted is None:
            return measured
        return as_refitted(stage, measured, refitted)


def refitted_run(run: Run, learner: str) -> Run:
    """Return the run with the learner's models from all ratings if it has them, else the run."""
    return FinalRun(run) if has_refitted(run, learner) else run


def refit_input(run: Run) -> dict[str, str]:
    """Return the fingerprint that identifies the refitted models; empty without them."""
    return {REFIT: (run.record(REFIT) or {})["fingerprint"]} if is_refitted(run) else {}


def _final(name: str) -> str:
    first, slash, below = name.partition("/")
    return f"{_NAMES.get(first, first)}{slash}{below}"
