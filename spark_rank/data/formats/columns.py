"""Finds the columns of user, item, rating and time in a table by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError

_RATERS = ("user", "customer", "cust", "member", "reviewer", "person", "client", "consumer",
           "rater", "judge", "account")  # fmt: skip
_RATED = ("item", "movie", "film", "product", "book", "song", "track", "artist", "joke", "game",
          "article", "business", "anime", "document")  # fmt: skip
# in lower case, with letters and digits only, as `bare_name` returns them
USUAL_NAMES = {
    "user": {*_RATERS, *(f"{name}id" for name in _RATERS), "uid"},
    "item": {*_RATED, *(f"{name}id" for name in _RATED), "iid", "isbn", "asin", "sku"},
    "rating": {"rating", "ratings", "score", "stars", "star", "starrating", "value", "overall",
               "grade", "bookrating", "ratingvalue", "reviewscore"},
    "timestamp": {"timestamp", "time", "ts", "unixtime", "unixtimestamp", "unixreviewtime",
                  "date", "datetime", "ratedat", "createdat", "ratingdate"},
}  # fmt: skip
NEEDED = ("user", "item", "rating")
# the part of a given split
PART = "part"


def bare_name(name: str) -> str:
    """Return the letters and digits of a column's name, in lower case."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def usual_role(name: str) -> str | None:
    """Return the usual role of a column with this name."""
    bare = bare_name(name)
    return next((role for role, usual in USUAL_NAMES.items() if bare in usual), None)


def named_roles(names: Iterable[str], columns: Mapping[str, str | None]) -> set[str]:
    """Return which of user, item and rating are among these names, configured or usual."""
    stripped = {name.strip() for name in names}
    usual = {usual_role(name) for name in stripped}
    return {role for role in NEEDED if role in usual or columns.get(role) in stripped}


def choose_columns(names: Sequence[str], settings: InputConfig, file: str) -> dict[str, int]:
    """Return the positions of user, item, rating and, if there are, timestamp and part.

    Without a header the columns are user, item, rating and timestamp in that order. Only the
    configuration names a column of parts.
    """
    chosen = {}
    for place, role in enumerate(USUAL_NAMES):
        if role in settings.columns:
            wanted = settings.columns[role]
            if wanted is not None:
                chosen[role] = _configured(role, wanted, names, file)
        elif settings.header is False:
            if place < len(names):
                chosen[role] = place
        else:
            positions = [i for i, name in enumerate(names) if usual_role(name) == role]
            _check_one(role, [names[i] for i in positions], file)
            if positions:
                chosen[role] = positions[0]
        if role not in chosen and role in NEEDED:
            raise _missing(role, names, settings, file)
    part = settings.columns.get(PART)
    if part is not None:
        chosen[PART] = _configured(PART, part, names, file)
    return chosen


def _configured(role: str, wanted: str, names: Sequence[str], file: str) -> int:
    positions = [place for place, name in enumerate(names) if name == wanted]
    _check_one(role, [names[place] for place in positions], file)
    if positions:
        return positions[0]
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    hint = suggestion(wanted, names)
    raise ConfigError(f"input.columns.{role}: {file} has no column {wanted!r} ({hint})")


def _check_one(role: str, candidates: Sequence[str], file: str) -> None:
    if len(set(candidates)) < len(candidates):
        raise ConfigError(
            f"input.columns.{role}: {file} has two columns named {candidates[0]!r}: rename one"
        )
    if len(candidates) > 1:
        raise ConfigError(
            f"input.columns.{role}: {file} has several columns that may hold the {role}: "
            f"{', '.join(candidates)}: choose one: --set 'input.columns.{role}={candidates[0]}'"
        )


def _missing(role: str, names: Sequence[str], settings: InputConfig, file: str) -> ConfigError:
    if settings.header is False:
        return ConfigError(
            f"input.columns.{role}: {file} has {len(names)} column{'s' * (len(names) != 1)}: set "
            "the positions of user, item and rating, from 0"
        )
    if settings.header and all(_is_number(name) for name in names):
        return ConfigError(
            f"input.header: the first line of {file} does not name the columns: use --set "
            "input.header=false"
        )
    return ConfigError(
        f"input.columns.{role}: cannot tell which column of {file} holds the {role}: set "
        f"it to one of {', '.join(names) or '(there are no columns)'}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
