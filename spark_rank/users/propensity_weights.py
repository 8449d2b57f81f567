"""Weights of one over the propensity for the training ratings of users."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_rank.features.shown import propensities
from spark_rank.records.features import ShownFacts
from spark_rank.users.batches import ragged
from spark_rank.users.problems import WEIGHTS

# a weight is at most so many times the median of its user's: few ratings must not decide a model
_MOST = 10.0


def with_propensity_weights(blocks: pa.RecordBatch, facts: ShownFacts) -> pa.RecordBatch:
    """Return the blocks with a column `weights`; its mean over each training part is 1."""
    ratings, ends = ragged(blocks.column("ratings"))
    sizes = blocks.column("n_train").to_numpy()
    weights = 1.0 / propensities(facts, ratings, np.ones(len(ratings)))
    for first, last, n_train in zip(ends[:-1], ends[1:], sizes, strict=True):
        training = weights[first : first + n_train]
        if len(training):
            training[:] = np.minimum(training, _MOST * np.median(training))
            weights[first:last] /= training.mean()
    column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(weights))
    return blocks.append_column(WEIGHTS, column)
