"""Writes Netflix-shaped text fast: combined files of ``movie:`` headings and ``user,rating,day``.

The text of 100 million ratings takes a minute and 2.2 GB. Popularity of movies is Zipf-like with
the most rated one seen by nearly half of the users, activity of users is log-normal with one who
has rated nearly everything, users of a movie are in no order: what makes stragglers is there.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

MOVIES = 17_770
RATINGS_PER_USER = 208
FILES = 16
_FIRST_DAY, _DAYS = date(1999, 11, 11), 2_243
_POPULARITY_EXPONENT, _ACTIVITY_SPREAD = 0.8, 1.2
# of the users have rated the best known movie; and of the movies are rated by the busiest user
_MOST = 0.48
_LINE_BYTES = 24


def write_netflix_text(folder: Path, ratings: int, seed: int = 1) -> None:
    """Write about `ratings` lines into `FILES` files and an empty ``_SUCCESS``; O(ratings)."""
    folder.mkdir(parents=True, exist_ok=True)
    users = max(50, ratings // RATINGS_PER_USER)
    rng = np.random.default_rng(seed)
    counts = _popularity(rng, ratings, users)
    activity = np.exp(rng.normal(0.0, _ACTIVITY_SPREAD, users))
    busy = rng.permutation(users).astype(np.int64)
    chances = np.cumsum(activity[busy])
    days = "".join((_FIRST_DAY + timedelta(day)).isoformat() for day in range(_DAYS))
    names = np.frombuffer(days.encode(), np.uint8).reshape(_DAYS, 10)
    for number in range(FILES):
        movies = np.arange(MOVIES * number // FILES, MOVIES * (number + 1) // FILES)
        size = int(counts[movies].sum() + len(movies)) * _LINE_BYTES
        text = np.empty(size, np.uint8)
        end = _write_movies(
            text, movies, counts, chances, busy, names, np.uint64(seed * 1_000 + number)
        )
        text[:end].tofile(folder / f"part-{number:05}.txt")
    (folder / "_SUCCESS").touch()


def _popularity(rng: np.random.Generator, ratings: int, users: int) -> NDArray[np.int64]:
    """Return the ratings of every movie; the best known ones have all that their users allow."""
    shares = (rng.permutation(MOVIES) + 1.0) ** -_POPULARITY_EXPONENT
    scale = ratings / shares.sum()
    for _ in range(20):
        counts = np.minimum(scale * shares, _MOST * users)
        scale *= ratings / counts.sum()
    return np.maximum(1, np.rint(counts)).astype(np.int64)


@njit(cache=True)
def _write_movies(text, movies, counts, chances, busy, days, state):  # type: ignore[no-untyped-def]
    """Write the movies' lines into `text`; return the number of bytes."""
    users = len(chances)
    seen = np.full(users, -1, np.int64)
    at = 0
    for movie in movies:
        at = _write_number(text, at, movie + 1)
        text[at], text[at + 1] = 58, 10
        at += 2
        written, tries = 0, 0
        # the busiest user has rated everything
        user = 0
        while written < counts[movie] and tries < 20 * counts[movie] + 20:
            if seen[user] != movie:
                seen[user] = movie
                written += 1
                state = _next(state)
                rating = 1 + (state >> np.uint64(33)) % np.uint64(9) // np.uint64(2)
                day = (state >> np.uint64(12)) % np.uint64(len(days))
                at = _write_number(text, at, 6 + busy[user] * 11 // 2)
                text[at], text[at + 1], text[at + 2] = 44, 48 + rating, 44
                text[at + 3 : at + 13] = days[day]
                text[at + 13] = 10
                at += 14
            state = _next(state)
            drawn = (state >> np.uint64(11)) * (1.0 / 9007199254740992.0) * chances[-1]
            user = min(np.searchsorted(chances, drawn, side="right"), users - 1)
            tries += 1
    return at


@njit(cache=True)
def _write_number(text, at, number):  # type: ignore[no-untyped-def]
    digits = 1
    while number >= 10**digits:
        digits += 1
    for place in range(digits):
        text[at + digits - 1 - place] = 48 + number % 10
        number //= 10
    return at + digits


@njit(cache=True)
def _next(state):  # type: ignore[no-untyped-def]
    """Return the next state of a 64-bit generator (Weyl sequence through a mixer)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
