"""Distributed batch ranking on Spark: one ranking model per user."""

from pathlib import Path

from spark_rank.compiled_cache import find_place

__version__ = "0.1.0"

find_place(Path(__file__).parent)
