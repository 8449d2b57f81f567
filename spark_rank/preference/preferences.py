"""The protocol of a pairwise preference h(u, v), and the wrapper that counts its calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.preference.errors import InvalidPreferenceError

FloatArray = NDArray[np.float64]
ItemArray = NDArray[Any]


class Preference(ABC):
    """Says how strongly u is preferred to v: h(u, v) in [0, 1] with h(u, v) + h(v, u) = 1.

    It may be non-transitive. Values strictly between 0 and 1 are probabilities: an algorithm that
    needs a decision draws it. A subclass must define `__call__`. It overrides `against` if it can
    compare one item with many at once, which is what the algorithms call.
    """

    @abstractmethod
    def __call__(self, u: Any, v: Any) -> float:
        """Return h(u, v)."""

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        """Return h(u, v) for every v of `others`, as one vector."""
        values = [self(u, v) for v in others.tolist()]
        return np.array(values, dtype=np.float64)


class Counted(Preference):
    """Counts in `calls` the pairs for which a preference is called, in either direction.

    One `against` call on n items counts n. Wrap a preference to measure an algorithm.
    """

    def __init__(self, prefer: Preference | Callable[[Any, Any], float]) -> None:
        self.prefer = as_preference(prefer)
        self.calls = 0

    def __call__(self, u: Any, v: Any) -> float:
        """Return h(u, v) and count it."""
        self.calls += 1
        return self.prefer(u, v)

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        """Return h(u, v) for every v of `others` and count them."""
        self.calls += len(others)
        return self.prefer.against(u, others)


class _PairFunction(Preference):
    """A preference from a plain function of two items."""

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def __call__(self, u: Any, v: Any) -> float:
        return self.function(u, v)


def as_preference(prefer: Preference | Callable[[Any, Any], float]) -> Preference:
    """Return `prefer` itself, or a plain function h(u, v) as a `Preference`."""
    return prefer if isinstance(prefer, Preference) else _PairFunction(prefer)


def item_array(items: Iterable[Any]) -> ItemArray:
    """Return the items as a vector, so that algorithms can take subsets: whole numbers as int64.

    All other items (strings, tuples, records) stay Python objects.
    """
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return items
    listed = list(items)
    kinds = set(map(type, listed))
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return np.array(listed, dtype=np.int64)
    return np.fromiter(listed, dtype=object, count=len(listed))


def checked_preferences(prefer: Preference, u: Any, others: ItemArray) -> FloatArray:
    """Return `prefer.against(u, others)`; raise unless it is one number in [0, 1] per item."""
    values = np.asarray(prefer.against(u, others), dtype=np.float64)
    if values.shape != others.shape:
        raise InvalidPreferenceError(
            f"against() returned shape {values.shape} for {len(others)} items: return one number "
            "per item"
        )
    # written so that NaN fails the check
    if len(values) and not (values.min() >= 0.0 and values.max() <= 1.0):
        wrong = int(np.argmin((values >= 0.0) & (values <= 1.0)))
        raise InvalidPreferenceError(
            f"h({u!r}, {others[wrong]!r}) = {values[wrong]!r} is not in [0, 1]: return the share "
            "or probability with which the first item goes before the second"
        )
    return values
