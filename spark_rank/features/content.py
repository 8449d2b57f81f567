"""Turns what a table says about items or users into columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# a column of numbers with so many different values, or with two, is a quantity, and no category
_QUANTITY_FROM = 31
# a category counts if so many rows have it; of one column the most frequent so many
_LEAST, _MOST = 5, 50
# of a title or a date: Heat (1995), 15-Dec-1995, 1995-12-15
_YEAR = r"(?P<first>^[0-9]{4})-[0-9]{2}-[0-9]{2}|(?P<last>(?:19|20)[0-9]{2})\)?\s*$"


@dataclass(frozen=True)
class Content:
    """Columns of numbers, a row per item or user, and the names of the columns."""

    names: tuple[str, ...]
    matrix: FloatArray


def encoded(rows: pa.Table, count: int) -> Content | None:
    """Return the columns of ``place, name, value``; None without a column that says something.

    `place` is the number of the item or user, below `count`. A column whose values are numbers is
    a quantity if it has more than 30 different ones, or two; the mean stands for missing values.
    Texts that mostly tell a year, as dates and titles of films do, are that year. Every other
    column is a category for every value that at least five places have, 1 where a place has it.
    """
    columns: dict[str, FloatArray] = {}
    for name in sorted(pc.unique(rows.column("name")).to_pylist()):
        own = rows.filter(pc.equal(rows.column("name"), name))
        places = own.column("place").to_numpy()
        columns |= _columns(name, places, own.column("value").combine_chunks(), count)
    telling = {name: column for name, column in columns.items() if column.std() > 0.0}
    if not telling:
        return None
    return Content(tuple(telling), np.column_stack(list(telling.values())))


def _columns(
    name: str, places: NDArray[np.int32], values: pa.StringArray, count: int
) -> dict[str, FloatArray]:
    numbers = _numbers(values)
    if numbers is not None:
        different = len(np.unique(numbers))
        if different == 2 or different >= _QUANTITY_FROM:
            return {name: _quantity(places, numbers, count)}
    years = _years(values)
    told = np.isfinite(years)
    if 2 * np.count_nonzero(told) > len(values):
        return {f"{name}: year": _quantity(places[told], years[told], count)}
    return _categories(name, places, values, count)


def _years(values: pa.StringArray) -> FloatArray:
    """Return the year that every text tells; NaN if it tells none."""
    found = pc.extract_regex(values, _YEAR)
    parts = [pc.struct_field(found, name) for name in ("first", "last")]
    text = pc.if_else(pc.equal(parts[0], ""), parts[1], parts[0])
    return np.asarray(text.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _numbers(values: pa.StringArray) -> FloatArray | None:
    """Return the values as numbers; None if one of them is no finite number."""
    try:
        numbers = np.asarray(values.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _quantity(places: NDArray[np.int32], numbers: FloatArray, count: int) -> FloatArray:
    """Return the mean number of every place; the mean of all stands where there is none."""
    sums = np.bincount(places, weights=numbers, minlength=count)
    found = np.bincount(places, minlength=count)
    return np.where(found > 0, sums / np.maximum(found, 1), numbers.mean())


def _categories(
    name: str, places: NDArray[np.int32], values: pa.StringArray, count: int
) -> dict[str, FloatArray]:
    codes = values.dictionary_encode()
    texts, numbers = codes.dictionary.to_pylist(), codes.indices.to_numpy()
    frequency = np.bincount(numbers, minlength=len(texts))
    frequent = [text for text, n in zip(texts, frequency, strict=True) if n >= _LEAST]
    most = dict(zip(texts, frequency.tolist(), strict=True))
    chosen = sorted(sorted(frequent, key=lambda text: (-most[text], text))[:_MOST])
    columns = {}
    for text in chosen:
        column = np.zeros(count)
        column[places[numbers == texts.index(text)]] = 1.0
        columns[f"{name}: {text}"] = column
    return columns
