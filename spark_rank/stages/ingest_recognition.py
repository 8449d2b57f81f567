"""Recognises from the rating files what the configuration does not say about their format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from spark_rank.config import InputConfig
from spark_rank.config.schema import FormatName
from spark_rank.data.formats import FORMATS
from spark_rank.data.formats.detection import check_format, recognise_format
from spark_rank.data.formats.file_kinds import PARQUET, refusal
from spark_rank.data.formats.parquet import complete_parquet, parquet_words
from spark_rank.data.formats.samples import Sample, read_samples, spread
from spark_rank.data.formats.table_settings import complete_table, table_words
from spark_rank.data.formats.tabular import as_movielens_csv
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem

# bytes that show the kind of a file; a tape archive shows it at the end of its first block
_MARK = 4096


def recognise_input(
    infos: Sequence[FileInfo], settings: InputConfig, files: Filesystem
) -> tuple[InputConfig, str]:
    """Return the complete settings, and in words how the files are read.

    Only what is not set is recognised, from a few of the files. Raises an error before any job
    starts if a file cannot be read as ratings.
    """
    filled = [info for info in infos if info.size > 0]
    if not filled:
        raise InputDataError(f"{settings.path}: is empty: there is no rating to learn from")
    marks = {info.path: files.head(info.path, _MARK) for info in _looked_at(filled, settings)}
    for path, mark in marks.items():
        if (message := refusal(path, mark)) is not None:
            raise InputDataError(message)
    parquet = [path for path, mark in marks.items() if mark.startswith(PARQUET)]
    if settings.is_recognised and len(parquet) == len(marks):
        settings = replace(settings, format="parquet")
    if settings.format == "parquet":
        return _parquet(filled, list(marks), parquet, settings, files)
    _check_no_parquet(parquet, settings)
    return _text(filled, settings, files)


def _looked_at(filled: Sequence[FileInfo], settings: InputConfig) -> list[FileInfo]:
    """Return a few of the files; all files of Parquet, whose reader reads every footer."""
    if settings.format == "parquet":
        return list(filled)
    chosen = set(spread([info.path for info in filled]))
    return [info for info in filled if info.path in chosen]


def _parquet(
    filled: Sequence[FileInfo],
    looked_at: Sequence[str],
    parquet: Sequence[str],
    settings: InputConfig,
    files: Filesystem,
) -> tuple[InputConfig, str]:
    for path in looked_at:
        if path not in parquet:
            check_format(path, _lines_of(files, path), settings)
            raise InputDataError(f"{path}: is not a Parquet file: is input.format 'parquet' right?")
    complete = complete_parquet(files, filled, settings)
    return complete, f"read as parquet: {parquet_words(files, filled, complete)}"


def _check_no_parquet(parquet: Sequence[str], settings: InputConfig) -> None:
    if parquet and settings.is_recognised:
        raise InputDataError(
            f"{parquet[0]} is a Parquet file and others are not: name files of one kind with "
            "input.path"
        )
    if parquet:
        raise ConfigError(
            f"input.format: {parquet[0]} is a Parquet file, not {settings.format!r}: set "
            "input.format=parquet"
        )


def _text(
    filled: Sequence[FileInfo], settings: InputConfig, files: Filesystem
) -> tuple[InputConfig, str]:
    encoding: str = settings.encoding or "utf-8"
    if not settings.is_recognised:
        encoding = settings.encoding or FORMATS[settings.known_format].encoding
    samples = read_samples(files, [info.path for info in filled], encoding)
    if settings.is_recognised:
        settings = replace(settings, format=_format_of(samples, settings))
    else:
        check_format(samples[0].path, samples[0].lines, settings)
    if settings.format == "movielens-csv":
        settings = as_movielens_csv(settings)
    if settings.format not in ("csv", "movielens-csv"):
        return settings, f"read as {settings.format}{_levels(settings)}"
    settings = complete_table(samples, settings)
    words = table_words(samples, settings)
    return settings, f"read as {settings.format}: {words}{_levels(settings)}"


def _format_of(samples: Sequence[Sample], settings: InputConfig) -> FormatName:
    """Return the common format of all samples."""
    filled = [sample for sample in samples if sample.lines]
    if not filled:
        raise InputDataError(f"{samples[0].path}: has only blank lines: there is no rating to read")
    kinds = {sample.path: recognise_format(sample.path, sample.lines) for sample in filled}
    # these can be read together as tables
    if (
        set(kinds.values()) <= {"csv", "movielens-csv", "movielens-100k"}
        and len(set(kinds.values())) > 1
    ):
        return "csv"
    first = filled[0].path
    for path, kind in kinds.items():
        if kind != kinds[first]:
            raise InputDataError(
                f"{first} looks like {kinds[first] or 'no ratings'} and {path} like "
                f"{kind or 'no ratings'}: name files of one kind with input.path"
            )
    kind = kinds[first]
    if kind == "letor":  # this format decides the stages, so it must be set beforehand
        raise ConfigError(
            f"input.format: {first} looks like letor, which has its own feature vectors: add "
            "--set input.format=letor"
        )
    if kind is None and settings.delimiter is None:
        complete_table(
            filled, replace(settings, format="csv")
        )  # raises the reason why this is no table
    return cast("FormatName", kind or "csv")


def _levels(settings: InputConfig) -> str:
    """Return the rating levels of the format in words."""
    levels = FORMATS[settings.known_format].levels
    if not levels or settings.levels or settings.rating_min is not None:
        return ""
    if settings.rating_max is not None:
        return ""
    return f", ratings {levels[0]:g}, {levels[1]:g}, … {levels[-1]:g}"


def _lines_of(files: Filesystem, path: str) -> tuple[str, ...]:
    return next(iter(read_samples(files, [path], "latin-1"))).lines
