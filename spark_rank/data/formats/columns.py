"""Which column of a table is the user, the item, the rating and the time, by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError

_RATERS = ("user", "customer", "cust", "member", "reviewer", "person", "client", "consumer",
           "rater", "judge", "account")  # fmt: skip
_RATED = ("item", "movie", "film", "product", "book", "song", "track", "artist", "joke", "game",
          "article", "business", "anime", "document")  # fmt: skip
# without anything but letters and digits, which alone tell names apart
USUAL_NAMES = {
    "user": {*_RATERS, *(f"{name}id" for name in _RATERS), "uid"},
    "item": {*_RATED, *(f"{name}id" for name in _RATED), "iid", "isbn", "asin", "sku"},
    "rating": {"rating", "ratings", "score", "stars", "star", "starrating", "value", "overall",
               "grade", "bookrating", "ratingvalue", "reviewscore"},
    "timestamp": {"timestamp", "time", "ts", "unixtime", "unixtimestamp", "unixreviewtime",
                  "date", "datetime", "ratedat", "createdat", "ratingdate"},
}  # fmt: skip
NEEDED = ("user", "item", "rating")


def bare_name(name: str) -> str:
    """Return the letters and digits of a column's name, in lower case."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def usual_role(name: str) -> str | None:
    """Return what a column is usually for, by its name."""
    bare = bare_name(name)
    return next((role for role, usual in USUAL_NAMES.items() if bare in usual), None)


def named_roles(names: Iterable[str], columns: Mapping[str, str | None]) -> set[str]:
    """Return which of user, item and rating these names are, as configured or as usual."""
    known = {name.strip() for name in names}
    usual = {usual_role(name) for name in known}
    return {role for role in NEEDED if role in usual or columns.get(role) in known}


def choose_columns(names: Sequence[str], settings: InputConfig, file: str) -> dict[str, int]:
    """Return the places of user, item, rating and (where there is one) timestamp.

    Columns without names are user, item, rating and timestamp in that order.
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
            found = [i for i, name in enumerate(names) if usual_role(name) == role]
            _check_one(role, [names[i] for i in found], file)
            if found:
                chosen[role] = found[0]
        if role not in chosen and role in NEEDED:
            raise _missing(role, names, settings, file)
    return chosen


def _configured(role: str, wanted: str, names: Sequence[str], file: str) -> int:
    found = [place for place, name in enumerate(names) if name == wanted]
    _check_one(role, [names[place] for place in found], file)
    if found:
        return found[0]
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    hint = suggestion(wanted, names)
    raise ConfigError(f"input.columns.{role}: {file} has no column {wanted!r} ({hint})")


def _check_one(role: str, found: Sequence[str], file: str) -> None:
    if len(set(found)) < len(found):
        raise ConfigError(
            f"input.columns.{role}: {file} has two columns {found[0]!r} and nothing tells which "
            "is meant: rename one"
        )
    if len(found) > 1:
        raise ConfigError(
            f"input.columns.{role}: {file} has several columns that may hold the {role}: "
            f"{', '.join(found)}: say --set 'input.columns.{role}={found[0]}'"
        )


def _missing(role: str, names: Sequence[str], settings: InputConfig, file: str) -> ConfigError:
    if settings.header is False:
        return ConfigError(
            f"input.columns.{role}: {file} has {len(names)} column{'s' * (len(names) != 1)}: name "
            "the places of user, item and rating, from 0"
        )
    if settings.header and all(_is_number(name) for name in names):
        return ConfigError(
            f"input.header: the first line of {file} does not name the columns: say --set "
            "input.header=false"
        )
    return ConfigError(
        f"input.columns.{role}: cannot tell which column of {file} holds the {role}: name "
        f"one of {', '.join(names) or '(there are no columns)'}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
