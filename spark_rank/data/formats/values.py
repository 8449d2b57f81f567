"""Reads ids, ratings and times from text; unreadable text becomes null, never an exception."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config.schema import PartName
from spark_rank.data.formats.columns import PART
from spark_rank.data.formats.notation import UNITS, TimeUnit

_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)$"
_DAY = 86_400
_BLANKS = " \t\u00a0"
_YEAR_FIRST = r"^(\s*)([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})(?=[ T]|$)"
_TO_ISO = "$1$2-$3-$4"
_YEAR_LAST = r"^(\s*)([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})(?=[ T]|$)"
# without this, Spark reads a bare time of day as today's, and a month as its first day
_BEGINS_WITH_DAY = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T]|$)"

# the words for each part of a given split, in the order of their numbers
PART_NAMES: dict[PartName, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "held_out", "held out"),
}


def typed(
    frame: DataFrame,
    parts: Mapping[str, Column],
    fields_ok: Column,
    seconds: Column | None = None,
    rating: Column | None = None,
    **further: Column,
) -> DataFrame:
    """Return the parsed rows, which `spark_rank.data.quality` then checks.

    `parts` are the texts of user, item, rating and, if there are, timestamp and part of a given
    split. `seconds` is the
    time, by default `read_seconds` of its text, and `rating` the number, by default `read_number`
    of its text.
    """
    timestamp = parts.get("timestamp", F.lit(None).cast("string"))
    time = read_seconds(timestamp) if seconds is None else seconds
    if PART in parts:
        further[PART] = read_part(parts[PART])
    return frame.select(
        "source",
        "block",
        "row",
        "raw",
        "text_ok",
        fields_ok.alias("fields_ok"),
        read_identifier(parts["user"]).alias("user_id"),
        read_identifier(parts["item"]).alias("item_id"),
        (read_number(parts["rating"]) if rating is None else rating).alias("rating"),
        time.alias("timestamp"),
        (timestamp.isNull() | time.isNotNull() | (F.trim(timestamp) == "")).alias("timestamp_ok"),
        *[column.alias(name) for name, column in further.items()],
    )


def read_identifier(text: Column) -> Column:
    """Return the id unchanged; null for blank text."""
    # not trimmed: ids in the output are those of the input
    return F.when(F.ltrim(text, F.lit(_BLANKS)) != "", text)


def read_part(text: Column) -> Column:
    """Return the number of a part of a given split by its name; else null."""
    name = F.lower(F.trim(text))
    number = F.lit(None).cast("int")
    for place, names in enumerate(PART_NAMES.values()):
        number = F.when(name.isin(*names), F.lit(place)).otherwise(number)
    return number


def read_number(text: Column, decimal: str = ".") -> Column:
    """Return a double, null if the text is no number (Java also accepts ``5d`` and ``0x1p1``)."""
    if decimal == ",":
        # with a decimal comma, text with a point is not a number
        text = F.when(~F.contains(text, F.lit(".")), F.replace(text, F.lit(","), F.lit(".")))
    # one digit, as most ratings are, needs neither a pattern nor a parser
    digit = F.ascii(text) - F.lit(ord("0"))
    trimmed = F.trim(text)
    return F.when((F.length(text) == 1) & digit.between(0, 9), digit.cast("double")).otherwise(
        F.when(trimmed.rlike(_NUMBER), trimmed.try_cast("double"))
    )


def read_seconds(text: Column) -> Column:
    """Return seconds since 1970 from a number, an ISO date or an ISO time; else null."""
    trimmed = F.trim(text)
    dated = F.when(trimmed.rlike(_BEGINS_WITH_DAY), F.try_to_timestamp(trimmed))
    return F.coalesce(
        trimmed.try_cast("bigint"),
        read_number(text).try_cast("bigint"),
        F.unix_timestamp(dated),
    )


def read_times(text: Column, unit: TimeUnit, day_first: bool | None) -> Column:
    """Return seconds since 1970 from a number in a unit, or from a date with or without a time.

    A date that ends with its year is null, unless `day_first` gives the order of its numbers.
    """
    _, per_second = UNITS[unit]
    if per_second == 1 and day_first is None:
        return read_seconds(F.regexp_replace(text, _YEAR_FIRST, _TO_ISO))
    ordered = F.regexp_replace(text, _YEAR_FIRST, _TO_ISO)
    if day_first is not None:
        # 3.4.2020 as 2020-4-3
        turned = "$1$4-$3-$2" if day_first else "$1$4-$2-$3"
        ordered = F.regexp_replace(ordered, _YEAR_LAST, turned)
    trimmed = F.trim(text)
    number = F.coalesce(trimmed.try_cast("bigint"), read_number(text).try_cast("bigint"))
    # whole seconds, rounded down by integer division: doubles cannot hold nanoseconds
    whole = F.call_function("div", number - F.pmod(number, F.lit(per_second)), F.lit(per_second))
    return F.when(number.isNotNull(), whole).otherwise(read_seconds(ordered))


def read_day(text: Column) -> Column:
    """Return the seconds from 1970 to the start of a day YYYY-MM-DD; else null."""
    # Spark would read a bare year as its first of January
    return F.when(F.length(text) == 10, F.unix_date(text.try_cast("date")).cast("bigint") * _DAY)
