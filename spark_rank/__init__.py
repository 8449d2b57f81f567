"""Distributed batch ranking on Spark: one ranking model per user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_rank.reader.recommender import Recommender

__all__ = ["Recommender"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import `Recommender` on first use, so that importing only the learners stays fast."""
    if name == "Recommender":
        from spark_rank.reader.recommender import Recommender

        return Recommender
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
