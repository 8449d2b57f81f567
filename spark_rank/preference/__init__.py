"""Preference-based ranking: sorts by a pairwise preference, and aggregates voters' rankings."""

from spark_rank.preference.aggregation import (
    METHODS,
    Aggregation,
    aggregate,
    aggregate_majorities,
)
from spark_rank.preference.errors import (
    InvalidMajoritiesError,
    InvalidPreferenceError,
    InvalidRankingError,
    InvalidSettingError,
    PreferenceError,
)
from spark_rank.preference.losses import preference_loss, ranking_loss
from spark_rank.preference.majorities import (
    count_majorities,
    kemeny_lower_bound,
    kemeny_score,
)
from spark_rank.preference.preferences import Counted, Preference
from spark_rank.preference.ready_made import (
    from_classifier,
    from_majorities,
    from_matrix,
    from_scores,
    from_votes,
)
from spark_rank.preference.sorting import degree_rank, quicksort_rank
from spark_rank.preference.theorem_rows import TheoremRow
from spark_rank.preference.theorems import run_theorems
from spark_rank.preference.weights import bipartite, k_partite, kemeny, top_k

__all__ = [
    "METHODS",
    "Aggregation",
    "Counted",
    "InvalidMajoritiesError",
    "InvalidPreferenceError",
    "InvalidRankingError",
    "InvalidSettingError",
    "Preference",
    "PreferenceError",
    "TheoremRow",
    "aggregate",
    "aggregate_majorities",
    "bipartite",
    "count_majorities",
    "degree_rank",
    "from_classifier",
    "from_majorities",
    "from_matrix",
    "from_scores",
    "from_votes",
    "k_partite",
    "kemeny",
    "kemeny_lower_bound",
    "kemeny_score",
    "preference_loss",
    "quicksort_rank",
    "ranking_loss",
    "run_theorems",
    "top_k",
]
