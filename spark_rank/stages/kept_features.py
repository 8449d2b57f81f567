"""The factors of an earlier run, kept for the items of this run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.features.choice import Choice
from spark_rank.features.files import open_distributed
from spark_rank.frames.item_features import FeatureArrays, item_table
from spark_rank.reader.recorded import is_refitted
from spark_rank.records.features import FactorFacts
from spark_rank.stages.feature_tables import distribute_files, publish_files
from spark_rank.stages.final_run import FinalRun
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEM_FEATURES, ITEMS
from spark_rank.wording import count_of


def run_with_factors(config: Config, run: Run) -> tuple[Run, dict[str, Any]]:
    """Return the run whose factors are kept, and its record of features, or raise `ConfigError`."""
    named, kind = config.features.kept_from or "", config.features.kind
    earlier = Run(run.spark, config.store, named)
    if run.all_ratings and is_refitted(earlier):
        earlier = FinalRun(earlier)
    record = earlier.record("features")
    if record is None or record["settings"]["kind"] != kind:
        raise ConfigError(
            f"features.kept_from: run {named!r} in {config.store} has no factors of this kind: "
            f"name a run that has finished 'features' with features.kind {kind!r}"
        )
    return earlier, record


def kept_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Take the factors of an earlier run; items that are new get zeros."""
    earlier, record = run_with_factors(config, run)
    old = open_distributed(distribute_files(spark, earlier))
    items = run.read(ITEMS).select("item", "item_id").toArrow().sort_by("item")
    ids = items.column("item_id").combine_chunks()
    places = pc.index_in(ids, value_set=old.item_ids).to_numpy(zero_copy_only=False)
    is_known = ~np.isnan(places)
    rows = places[is_known].astype(np.int64)
    matrix = np.zeros((len(items), old.matrix.shape[1]), dtype=np.float32)
    offset = np.zeros(len(items))
    prior = np.zeros((len(items) + 2, old.matrix.shape[1]), dtype=np.float32)
    matrix[is_known], offset[is_known] = old.matrix[rows], old.offset[rows]
    # the last two rows belong to no item
    prior[:-2][is_known], prior[-2:] = old.prior[rows], old.prior[-2:]
    offsets = items.append_column("offset", pa.array(offset))
    arrays = FeatureArrays.shared(
        offsets, matrix, prior, choice=_kept_choice(old.choice, rows, is_known)
    )
    n_items = run.write(ITEM_FEATURES, item_table(spark, offsets, matrix))
    learned = earlier.facts(FactorFacts)
    n_new = int(np.count_nonzero(~is_known))
    return StageResult(
        # one of the columns holds every user's own level, and is no factor
        f"{count_of(n_items, 'item')} × {count_of(matrix.shape[1] - 1, 'factor')} kept from "
        f"{earlier.run_id}, {count_of(n_new, 'item')} without: zeros",
        {ITEM_FEATURES.table: n_items},
        replace(
            learned,
            files=publish_files(run, arrays),
            squared_radius=arrays.squared_radius,
            origin=learned.origin or record["fingerprint"],
            without=n_new,
        ),
    )


def _kept_choice(
    old: Choice | None, rows: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> Choice | None:
    """Return the model of choices for the items of this run; new items have zeros."""
    if old is None:
        return None
    decoder = np.zeros((len(is_known), old.decoder.shape[1]), dtype=np.float32)
    encoder = np.zeros((len(is_known) + 2, old.encoder.shape[1]), dtype=np.float32)
    decoder[is_known] = old.decoder[rows]
    encoder[:-2][is_known], encoder[-2:] = old.encoder[rows], old.encoder[-2:]
    return Choice(decoder, encoder)
