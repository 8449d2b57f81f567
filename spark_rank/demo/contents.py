"""What a page takes from a run: items, features, offset, prior, rating scale and learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.demo.quantised import Quantised, encoded
from spark_rank.demo.scale import DemoScale
from spark_rank.learners import learner_class
from spark_rank.redaction import redact
from spark_rank.visible import visible

LONGEST_TITLE = 200  # characters of a title that the page shows


@dataclass(frozen=True)
class Uncertainty:
    """How far ratings are from scores, measured on held-out ratings of some users.

    `noise` is the variance of a rating around its score if the weights were known. `score_error`
    is the greatest difference that 16 bits make to a score.
    """

    noise: float
    score_error: float
    users: int
    ratings: int


@dataclass(frozen=True)
class Choices:
    """What somebody chooses who rated some items: ``decoder_i · code``, and how much it counts.

    The code follows from the rated items as the prior weights do, by `encoder` and `encoder_ends`.
    """

    beta: float
    decoder: Quantised
    encoder: Quantised
    encoder_ends: NDArray[np.float64]

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as the page's script reads them."""
        return {
            "beta": self.beta,
            "decoder": self.decoder.as_json(),
            "encoder": _with_ends(self.encoder, self.encoder_ends),
        }


@dataclass(frozen=True)
class Contents:
    """The numbers and texts of a page; the rows of all arrays are its items, most rated first.

    `prior` and `prior_ends` (constant, logarithm) give the prior weights of somebody who rated the
    items J: ``Σ_J prior_j / √|J| + constant + logarithm · log |J|``; None without a prior.
    `params` are the hyper-parameters of MPRank. With `choices` lists are in the run's own order.
    """

    run_id: str
    learner: str
    noun: str
    item_ids: Sequence[str]
    titles: Sequence[str | None]
    n_ratings: NDArray[np.int64]
    listed: NDArray[np.bool_]
    left_out: int
    features: Quantised
    offset: NDArray[np.float64]
    prior: Quantised | None
    prior_ends: NDArray[np.float64]
    scale: DemoScale
    params: dict[str, Any]
    min_ratings: int
    uncertainty: Uncertainty | None
    choices: Choices | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the contents as the page's script reads them."""
        prank: Any = learner_class("prank")
        return {
            "run": _shown(self.run_id),
            "learner": _shown(self.learner),
            "noun": _shown(self.noun),
            # ids go into files that `ingest` reads, so they stay as they are
            "ids": list(self.item_ids),
            "titles": [None if title is None else _shown(title) for title in self.titles],
            "counts": self.n_ratings.tolist(),
            "listed": self.listed.astype(int).tolist(),
            "leftOut": self.left_out,
            "features": {"width": self.features.values.shape[1], **self.features.as_json()},
            "offset": encoded(self.offset, "<f8"),
            "prior": None if self.prior is None else _with_ends(self.prior, self.prior_ends),
            "choices": None if self.choices is None else self.choices.as_json(),
            "scale": self.scale.as_json(),
            "params": self.params,
            "prank": prank(n_ranks=len(self.scale.levels)).get_params(),
            "minRatings": self.min_ratings,
            "noise": None if self.uncertainty is None else self.uncertainty.noise,
        }


def _with_ends(rows: Quantised, ends: NDArray[np.float64]) -> dict[str, Any]:
    constant, logarithm = ends.tolist()
    return {**rows.as_json(), "constant": constant, "logarithm": logarithm}


def _shown(text: str) -> str:
    """Return text without secrets and control characters."""
    return visible(redact(text), LONGEST_TITLE)
