"""Which means over users say something: one rule for the console, the report and `runs diff`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

# With one user fewer, a learner that is better for every one of them could be so by chance: the
# least p-value of the sign test with n users is 2/2ⁿ, and 2/2⁵ is above 0.05.
FEWEST_USERS = 6
# Scores that are all equal cost nothing here: less is not better.
FREE_FOR_A_CONSTANT = frozenset({"hr1", "hmp1", "hmp2"})
NOTHING_TO_ORDER = "held-out ratings all equal"
SCORES_ALL_EQUAL = "scores all equal"


def enough_users(users: int | None) -> bool:
    """Tell whether an interval, or a mark for the better one, rests on enough users."""
    return users is not None and users >= FEWEST_USERS


@dataclass(frozen=True)
class Evidence:
    """Means over users by learner and metric, and what decides whether they say something.

    `users` has the number of users behind every mean, `status` how many users have each status
    under a learner. `baselines` are the learners that the others are compared with: a constant
    among them is no fault.
    """

    means: Mapping[str, Mapping[str, float | None]]
    users: Mapping[str, Mapping[str, int]]
    status: Mapping[str, Mapping[str, int]]
    baselines: Collection[str]

    def nothing_because(self, learner: str) -> str | None:
        """Say in a few words why all means of a learner say nothing; None where they do."""
        if (reason := nothing_learned(self.status.get(learner, {}))) is not None:
            return reason
        if all(own.get("misranking") is None for own in self.means.values()):
            return NOTHING_TO_ORDER
        if learner not in self.baselines and self._misranks_every_pair(learner):
            return SCORES_ALL_EQUAL
        return None

    def mean(self, learner: str, metric: str) -> float | None:
        """Return a mean; None where there is none, and where it says nothing."""
        if self.nothing_because(learner) is not None:
            return None
        return self.means[learner].get(metric)

    def count(self, learner: str, metric: str) -> int | None:
        """Return how many users a mean is over; None where that was not recorded."""
        return self.users.get(learner, {}).get(metric)

    def best(self, metric: str, *, higher: bool) -> float | None:
        """Return the mean that may be marked as the best one; None where no mark is earned.

        The best of the baselines alone is no result.
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
        """Tell whether no pair of anybody is in the right order: equal scores are misranked."""
        share = self.means[learner].get("misranking")
        return share == 1.0 and enough_users(self.count(learner, "misranking"))


def nothing_learned(status: Mapping[str, int]) -> str | None:
    """Say why no user was learned, from the users by status; None where somebody was."""
    if not status or any(not name.startswith(("fallback", "failed")) for name in status):
        return None
    reasons = sorted({name.partition(": ")[2] or name for name in status})
    return f"nothing learned ({', '.join(reasons).replace('_', ' ')})"
