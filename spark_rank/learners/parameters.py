"""Hyper-parameters as declarations: type, range and meaning, checked in one place.

A learner lists its parameters once; its constructor, the registry, the configuration files and
the help texts all read that list.
"""

from __future__ import annotations

import reprlib
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_rank.learners.errors import InvalidParameterError


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, and any other value unchanged."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter's meaning; the subclasses add type and range."""

    doc: str
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise `InvalidParameterError`, naming the allowed values, unless `value` is allowed."""
        if value is None and self.optional:
            return
        if not self._accepts(value):
            allowed = self.describe() + (", or null" if self.optional else "")
            shown = reprlib.repr(value)
            raise InvalidParameterError(f"{name}={shown} is not allowed: give {allowed}")

    def describe(self) -> str:
        """Say in words which values are allowed."""
        raise NotImplementedError

    def _accepts(self, value: Any) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Real(Parameter):
    """A finite number, above `above` (exclusive) or from `at_least` (inclusive)."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def describe(self) -> str:
        """Say in words which values are allowed."""
        bounds = [("above", self.above), ("at least", self.at_least), ("at most", self.at_most)]
        words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
        return " ".join(["a number", " and ".join(words)]).strip()

    def _accepts(self, value: Any) -> bool:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (
            abs(value) <= sys.float_info.max  # false for NaN, infinity and endless integers
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number of at least `at_least`."""

    at_least: int = 0

    def describe(self) -> str:
        """Say in words which values are allowed."""
        return f"a whole number of at least {self.at_least}"

    def _accepts(self, value: Any) -> bool:
        value = plain(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and value >= self.at_least


@dataclass(frozen=True)
class Choice(Parameter):
    """One of a few names."""

    options: tuple[Any, ...] = ()

    def describe(self) -> str:
        """Say in words which values are allowed."""
        return "one of " + ", ".join(str(option) for option in self.options)

    def _accepts(self, value: Any) -> bool:
        # bool first: True == 1 must not pass for the option 1
        value = plain(value)
        return not isinstance(value, bool) and value in self.options
