"""Reads rating files in their native formats into the same columns; unreadable parts are null.

`spark_rank.data.quality` decides which rows are valid, with reasons for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Format, Reading
from spark_rank.data.formats.delimited import (
    delimited_reader,
    read_book_crossing,
    read_eachmovie,
)
from spark_rank.data.formats.jester import read_jester
from spark_rank.data.formats.judgments import read_judgments
from spark_rank.data.formats.letor import read_letor
from spark_rank.data.formats.netflix import read_netflix
from spark_rank.data.formats.parquet import read_parquet
from spark_rank.data.formats.tabular import read_csv, read_movielens_csv

_STARS = (1.0, 2.0, 3.0, 4.0, 5.0)
_HALF_STARS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
_REAL = r"-?\d+(\.\d*)?"

FORMATS: dict[str, Format] = {
    "movielens-100k": Format(
        "196\\t242\\t3\\t881250949",
        delimited_reader("\t", (3, 4)),
        rf"[^\t]+\t[^\t]+\t{_REAL}(\t\d*)?\s*$",
        levels=_STARS,
    ),
    "movielens-dat": Format(
        "1::1193::5::978300760",
        delimited_reader("::", (3, 4)),
        rf"[^:]+::[^:]+::{_REAL}(::\d*)?\s*$",
        levels=_HALF_STARS,
        coarse_levels=_STARS,
    ),
    "movielens-csv": Format(
        "userId,movieId,rating,timestamp",
        read_movielens_csv,
        r"userId,movieId,rating(,timestamp)?\s*$",
        levels=_HALF_STARS,
        coarse_levels=_STARS,
    ),
    "netflix": Format("1: / 1488844,3,2005-09-06", read_netflix, r"\s*\d+\s*:\s*$", levels=_STARS),
    "jester": Format(
        "74,-7.82,8.79,99,…", read_jester, rf"\d+(,{_REAL}){{20,}}\s*$", low=-10.0, high=10.0
    ),
    "book-crossing": Format(
        '"276725";"034545104X";"0"',
        read_book_crossing,
        r'("[^"]*";){2}"[^"]*"\s*$',
        encoding="latin-1",
        levels=tuple(map(float, range(1, 11))),
        implicit=0.0,
    ),
    "eachmovie": Format(
        "1 10 0.8 1 1996-03-01 12:00:00",
        read_eachmovie,
        r"\d+\s+\d+\s+[01]?(\.\d+)?\s+[01]?(\.\d+)?\s+\d+[-/]\d",
        levels=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    ),
    "judgments": Format(
        "QN 00001 / RD  139 1222  151 2211", read_judgments, r"QN\s+\S+\s*$|query\t[^\t]+\t"
    ),
    "letor": Format(
        "2 qid:10 1:0.0 2:0.5 #docid = 244338",
        read_letor,
        rf"{_REAL}\s+qid:\S+\s+\d+:",
        has_features=True,
    ),
    "csv": Format("user,item,rating,timestamp", read_csv, r"(?i)user(_?id)?,(item|movie)"),
    "parquet": Format("columns user, item, rating, timestamp", read_parquet, "PAR1"),
}


def read_ratings(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Return the parsed rows of `files`; blank lines are not rows."""
    return FORMATS[settings.known_format].read(spark, files, settings)
