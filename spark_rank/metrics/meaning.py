"""Decides which means over users are meaningful, for the console, the report and `runs diff`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

# With fewer users, even a learner that is better for every user could be so by chance: the least
# p-value of the sign test with n users is 2/2ⁿ, and 2/2⁵ is above 0.05.
FEWEST_USERS = 6
# Metrics that are 0 for equal scores, so that less is not better.
FREE_FOR_A_CONSTANT = frozenset({"hr1", "hmp1", "hmp2"})
# Metrics that compare no two items: they say something where there is nothing to order.
OF_SINGLE_ITEMS = frozenset({"rmse", "mae"})
NOTHING_TO_ORDER = "held-out ratings all equal"
SCORES_ALL_EQUAL = "scores all equal"


def enough_users(users: int | None) -> bool:
    """Tell whether there are enough users for an interval, or for a mark of the best mean."""
    return users is not None and users >= FEWEST_USERS


@dataclass(frozen=True)
class Evidence:
    """Means over users by learner and metric, and the counts that decide if they are meaningful.

    `users` has the number of users of every mean, `status` the number of users with each status
    under a learner. `baselines` are the learners that the others are compared with, which may
    score all items equally.
    """

    means: Mapping[str, Mapping[str, float | None]]
    users: Mapping[str, Mapping[str, int]]
    status: Mapping[str, Mapping[str, int]]
    baselines: Collection[str]

    def nothing_because(self, learner: str, metric: str | None = None) -> str | None:
        """Return briefly why a mean of a learner is meaningless; None if it is not.

        Without a metric: why all are that compare items.
        """
        if (reason := nothing_learned(self.status.get(learner, {}))) is not None:
            return reason
        if metric in OF_SINGLE_ITEMS:
            return None
        if all(of_learner.get("misranking") is None for of_learner in self.means.values()):
            return NOTHING_TO_ORDER
        if learner not in self.baselines and self._misranks_every_pair(learner):
            return SCORES_ALL_EQUAL
        return None

    def mean(self, learner: str, metric: str) -> float | None:
        """Return a mean; None if there is none, or if it is meaningless."""
        if self.nothing_because(learner, metric) is not None:
            return None
        return self.means[learner].get(metric)

    def count(self, learner: str, metric: str) -> int | None:
        """Return the number of users of a mean; None if it was not recorded."""
        return self.users.get(learner, {}).get(metric)

    def best(self, metric: str, *, higher: bool) -> float | None:
        """Return the mean to mark as the best; None if there is nothing to mark.

        If only baselines have a mean, none is marked.
        """
        if metric in FREE_FOR_A_CONSTANT:
            return None
        means = {
            learner: mean for learner in self.means
            if (mean := self.mean(learner, metric)) is not None
            and enough_users(self.count(learner, metric))
        }  # fmt: skip
        if means.keys() <= set(self.baselines) or len(set(means.values())) < 2:
            return None
        return (max if higher else min)(means.values())

    def _misranks_every_pair(self, learner: str) -> bool:
        """Tell whether all pairs of all users are misranked, as they are with equal scores."""
        share = self.means[learner].get("misranking")
        return share == 1.0 and enough_users(self.count(learner, "misranking"))


def nothing_learned(status: Mapping[str, int]) -> str | None:
    """Return why no user was learned, from the numbers of users by status; None if one was."""
    if not status or any(not name.startswith(("fallback", "failed")) for name in status):
        return None
    reasons = sorted({name.partition(": ")[2] or name for name in status})
    return f"nothing learned ({', '.join(reasons).replace('_', ' ')})"
