"""The errors and the warning of learners; each message says what to do.

A learner that has not learned, and a solver that stops early, raise and warn with scikit-learn's
own classes too, if scikit-learn is loaded: nobody can name these classes before. It is never loaded
here, which would take longer than learning.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

# classes that are also scikit-learn's, so that each is made once
_MADE: dict[tuple[Any, Any], Any] = {}


class LearnerError(ValueError):
    """Base of every error that a learner raises on purpose."""


class InvalidParameterError(LearnerError):
    """A hyper-parameter is of the wrong type or out of range."""


class InvalidDataError(LearnerError):
    """The training or scoring arrays cannot be used."""


class NoNumbersError(InvalidDataError, TypeError):
    """The entries of an array are no numbers."""


class UnknownLearnerError(LearnerError):
    """No learner has that name, or the named class is not a learner."""


class NotFittedError(LearnerError):
    """The learner was asked to score before it learned."""


class NumericFailureError(LearnerError):
    """The arithmetic broke down (a matrix that is not positive definite, an overflow)."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before its tolerance; the model is the best one that it found."""


def not_fitted(message: str) -> NotFittedError:
    """Return the error of a learner that has not learned."""
    error: NotFittedError = _with_peer(NotFittedError)(message)
    return error


def warn_not_converged(remedy: str) -> None:
    """Warn that a solver stopped before its tolerance; `remedy` says how far, and what to do."""
    category = _with_peer(ConvergenceWarning)
    warnings.warn(f"the solver stopped before its tolerance: {remedy}", category, stacklevel=2)


def _with_peer(own: type[Any]) -> Any:
    """Return a class that is scikit-learn's class of this name too, if that is loaded."""
    peer = getattr(sys.modules.get("sklearn.exceptions"), own.__name__, None)
    return own if peer is None else _both(own, peer)


def _both(own: Any, peer: Any) -> Any:
    def reduced(self: Any) -> Any:  # the class cannot be found by its name where this is read back
        return own, self.args

    if (own, peer) not in _MADE:
        namespace = {"__doc__": own.__doc__, "__module__": own.__module__, "__reduce__": reduced}
        _MADE[own, peer] = type(own.__name__, (own, peer), namespace)
    return _MADE[own, peer]
