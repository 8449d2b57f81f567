"""ingest: raw files to canonical ratings, dictionaries and a quarantine of unusable rows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank import events
from spark_rank.config import Config, InputConfig
from spark_rank.config.schema import PARTS
from spark_rank.config.sections import check_given_split, check_input
from spark_rank.data.damage import damaged_files_are_named
from spark_rank.data.dictionaries import number_ids
from spark_rank.data.formats import FORMATS
from spark_rank.data.formats.columns import PART
from spark_rank.data.formats.lines import with_line
from spark_rank.data.quality import (
    DUPLICATE,
    IMPLICIT,
    IMPOSSIBLE_TIMESTAMP,
    UNREADABLE_RATING,
    UNREADABLE_TIMESTAMP,
    with_reason,
)
from spark_rank.data.rating_scale import find_scale, known_scale, scale_table
from spark_rank.errors import InputDataError
from spark_rank.records.data import IngestFacts
from spark_rank.session.files import FileInfo
from spark_rank.stages.gathering import Gathered, gather, read_parts, scan_settings
from spark_rank.stages.ingest_duplicates import (
    MOST_PLACED,
    lines_of,
    repeated_ratings,
    without_places,
)
from spark_rank.stages.ingest_extras import (
    find_item_content,
    find_titles,
    write_given_features,
    write_item_content,
    write_titles,
)
from spark_rank.stages.ingest_inputs import (
    input_files,
    input_fingerprint,
    known_numbers,
    parts_of_files,
)
from spark_rank.stages.ingest_pieces import Dictionaries, Pieces, counts_by_reason, dictionaries
from spark_rank.stages.ingest_recognition import recognise_input
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEMS, QUARANTINE, RATING_SCALE, RATINGS, USERS
from spark_rank.wording import count_of

# up to so many ratings, the driver numbers the ids
_FEW_RATINGS = 200_000
_KEY_FOR = {
    UNREADABLE_RATING: "input.decimal",
    UNREADABLE_TIMESTAMP: "input.day_first",
    IMPOSSIBLE_TIMESTAMP: "input.time_unit",
}


def ingest(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Read the files, check their rows, number users and items, and write the tables.

    Every input row goes to `ratings` or `quarantine`, or is counted as implicit.
    """
    infos, part_of = input_files(config, run), parts_of_files(config, run)
    settings, reading = recognise_input(infos, _effective_input(config), run.files)
    if config.input.path is not None:
        events.emit("recognised", reading, stage="ingest")
    titles, content = find_titles(settings, run), find_item_content(settings, run)
    with scan_settings(spark), damaged_files_are_named(run.root):
        gathered = gather(infos, settings, config.prepare.buckets, run, part_of)
        pieces, judged, starts = gathered
        counts = counts_by_reason(pieces.rows)
        pieces = replace(pieces, rows=pieces.rows.where("share is not null"))
        few = counts.get(None, 0) <= _FEW_RATINGS
        tables = _write_ratings(pieces, content, config, settings, run, few=few)
        duplicates = counts.pop(None, 0) - tables[RATINGS.table]
        dropped = {IMPLICIT: counts.pop(IMPLICIT)} if IMPLICIT in counts else {}
        reasons = {str(reason): count for reason, count in counts.items()}
        unusable = _unusable(judged if reasons else None, starts, run)
        if duplicates:
            reasons[DUPLICATE] = duplicates
            names = _dictionaries(run, tables[ITEMS.table])
            repeated = repeated_ratings(pieces, names, settings.duplicates)
            repeated = run.keep(repeated, "repeated")
            places = Places(gathered, infos, part_of)
            duplicate_rows = _duplicate_rows(repeated, duplicates, places, settings, run)
            unusable = unusable.unionByName(duplicate_rows)
        reasons = dict(sorted(reasons.items()))
        tables[QUARANTINE.table] = run.write(QUARANTINE, unusable)
    # means of duplicates may lie between levels, so the scale comes from the ratings in the input
    as_given = settings.duplicates == "mean"
    ratings = pieces.ratings_as_given() if as_given else run.written(RATINGS)
    as_stored = ratings.select(F.col("rating").cast("float"))
    levels, scale = find_scale(as_stored, settings.cuts, known_scale(settings))
    tables[RATING_SCALE.table] = run.write(RATING_SCALE, scale_table(spark, levels))
    if FORMATS[settings.known_format].has_features and judged is not None:
        tables |= write_given_features(judged.where("reason is null"), run)
    tables |= write_titles(titles, run) | write_item_content(content, run)
    _check_counts(settings, run, tables, reasons)
    parts = _ratings_by_part(run) if pieces.parted else {}
    kept, quarantined = tables[RATINGS.table], tables[QUARANTINE.table]
    rows = kept + quarantined + sum(dropped.values())
    return StageResult(
        f"{count_of(rows, 'row')}: {count_of(kept, 'rating')} of "
        f"{count_of(tables[USERS.table], 'user')} and "
        f"{count_of(tables[ITEMS.table], 'item')}, {quarantined:,} quarantined{_in_words(reasons)}"
        + "".join(f", {count:,} of part {part}" for part, count in parts.items())
        + (f", {dropped[IMPLICIT]:,} implicit dropped" if dropped else "")
        + (
            f", {count_of(titles.unreadable, 'line')} of titles unreadable"
            if titles is not None and titles.unreadable
            else ""
        ),
        tables,
        IngestFacts(
            rows_in=rows,
            quarantined_by_reason=reasons,
            dropped_by_reason=dropped,
            rating_scale=scale,
            read_as=reading,
            titles_unreadable=None if titles is None else titles.unreadable,
            buckets=config.prepare.buckets,
            parts=parts,
        ),
    )


def _effective_input(config: Config) -> InputConfig:
    kept = config.input.dictionaries_from or config.previous
    if config.input.path is not None:
        return replace(config.input, dictionaries_from=kept)
    generated = config.synthesize
    return replace(
        InputConfig(
            format=generated.format, levels=[float(i + 1) for i in range(generated.levels)]
        ),
        delimiter=",",
        header=True,
        decimal=".",
        time_unit="s",
        duplicates=config.input.duplicates,
        cuts=config.input.cuts,
        dictionaries_from=kept,
    )


def _write_ratings(
    pieces: Pieces,
    content: DataFrame | None,
    config: Config,
    settings: InputConfig,
    run: Run,
    *,
    few: bool,
) -> dict[str, int]:
    """Write dictionaries and ratings; return their rows. Described items are items too."""
    tables = {}
    items = pieces.item_ids().select("item_id")
    if content is not None:
        items = items.unionByName(content.select("item_id").distinct())
    ids = {USERS: pieces.user_ids(few=few), ITEMS: items if few else items.distinct()}
    for contract, frame in ids.items():
        id_column, number = (column.name for column in contract.columns)
        distinct_ids = frame if few else run.keep(frame, contract.table)
        earlier_numbers = known_numbers(config, contract, run)
        numbered = number_ids(distinct_ids, id_column, number, earlier_numbers, few=few)
        tables[contract.table] = run.write(contract, numbered)
    merged = pieces.merged(_dictionaries(run, tables[ITEMS.table]), settings.duplicates)
    ratings = merged.withColumn("rating", F.col("rating").cast("float"))
    if not pieces.parted:
        ratings = ratings.withColumn(PART, F.lit(None).cast("int"))
    tables[RATINGS.table] = run.write(RATINGS, ratings)
    return tables


def _ratings_by_part(run: Run) -> dict[str, int]:
    """Return the number of ratings in each part of a given split, by the part's name."""
    rows = run.written(RATINGS).groupBy(PART).count().collect()
    counts = {row[PART]: row["count"] for row in rows}
    return {name: counts[part] for part, name in enumerate(PARTS) if part in counts}


def _dictionaries(run: Run, items: int) -> Dictionaries:
    return dictionaries(run.written(USERS), run.written(ITEMS), items)


def _unusable(judged: DataFrame | None, starts: DataFrame | None, run: Run) -> DataFrame:
    """Return the unusable rows with their places; the text is read again for that."""
    if judged is None:
        return QUARANTINE.nothing(run.spark)
    reason = F.col("reason")
    return _placed(judged.where(reason.isNotNull() & (reason != IMPLICIT)), starts)


def _placed(rows: DataFrame, starts: DataFrame | None) -> DataFrame:
    line = rows.withColumn("line", F.col("row") + 1) if starts is None else with_line(rows, starts)
    return line.select("source", "line", "raw", "reason")


class Places(NamedTuple):
    """Where rows are found again: what was gathered, from which files, of which parts."""

    gathered: Gathered
    infos: list[FileInfo]
    part_of: dict[str, int]


def _duplicate_rows(
    repeated: DataFrame, count: int, places: Places, settings: InputConfig, run: Run
) -> DataFrame:
    """Return the repeated ratings as rows of the quarantine, with places if they are few."""
    if count > MOST_PLACED:
        return without_places(repeated)
    judged, starts = places.gathered.judged, places.gathered.starts
    if judged is None or settings.format == "netflix":
        # the fast scan does not keep the places
        reading = read_parts(places.infos, settings, run, places.part_of)
        judged, starts = with_reason(reading.rows, settings), reading.starts
    return _placed(lines_of(repeated, judged), starts)


def _check_counts(
    settings: InputConfig, run: Run, tables: dict[str, int], reasons: dict[str, int]
) -> None:
    where = run.draft_path(QUARANTINE.table)
    kept, quarantined = tables[RATINGS.table], tables[QUARANTINE.table]
    rows = kept + quarantined
    if quarantined != sum(reasons.values()):
        raise InputDataError(
            f"{count_of(sum(reasons.values()), 'row')} unusable, but {quarantined:,} in the "
            "quarantine: the input seems to have changed while it was read: start again"
        )
    if kept == 0 and reasons.keys() == {DUPLICATE}:
        raise InputDataError(
            f"each of the {count_of(rows, 'rating')} occurs more than once, and input.duplicates "
            f"{settings.duplicates!r} keeps none of them: choose another value; the rows are in "
            f"{where}"
        )
    if kept == 0:
        raise InputDataError(
            f"no rating in {count_of(rows, 'row')}{_in_words(reasons)}: is input.format "
            f"{settings.format!r} right? The rows are in {where}"
            f"{_settings_to_try(settings, reasons)}"
        )
    # duplicates do not show that the input is broken
    unusable = quarantined - reasons.get(DUPLICATE, 0)
    if unusable > settings.max_bad_share * rows:
        raise InputDataError(
            f"{unusable:,} of {rows:,} rows are unusable{_in_words(reasons)}, more than "
            f"input.max_bad_share {settings.max_bad_share:g} allows: correct the input or raise "
            f"that share; the rows are in {where}{_settings_to_try(settings, reasons)}"
        )


def _settings_to_try(settings: InputConfig, reasons: dict[str, int]) -> str:
    """Return, in words, the settings that may make unreadable values readable."""
    if settings.format not in ("csv", "parquet", "movielens-csv"):
        return ""
    keys = [key for reason, key in _KEY_FOR.items() if reason in reasons]
    return f"; {' and '.join(keys)} can say how they are written" if keys else ""


def _in_words(reasons: dict[str, int]) -> str:
    words = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    return f" ({words})" if words else ""


def _validate(config: Config) -> None:
    check_input(config)
    check_given_split(config)


STAGE = Stage(
    name="ingest",
    run=ingest,
    settings=_effective_input,
    needs=lambda config: () if config.input.path is not None else ("synthesize",),
    inputs=input_fingerprint,
    validate=_validate,
)
