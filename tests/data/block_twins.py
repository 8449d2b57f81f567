"""Twins of splits and filters in plain Python, from their definitions; with a hash of their own."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from spark_rank.config import FilterConfig, PrepareConfig

# user, item, rating, time
Rating = tuple[int, int, float, int | None]

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int) -> int:
    """Return XXH64, step by step by its specification."""
    place, left = 0, len(data)
    if left >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while left >= 32:
            for lane in range(4):
                (word,) = struct.unpack_from("<Q", data, place + 8 * lane)
                lanes[lane] = _round(lanes[lane], word)
            place, left = place + 32, left - 32
        turned = [_rotated(v, bits) for v, bits in zip(lanes, (1, 7, 12, 18), strict=True)]
        total = sum(turned) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    total = (total + len(data)) & _MASK
    while left >= 8:
        total ^= _round(0, struct.unpack_from("<Q", data, place)[0])
        total = (_rotated(total, 27) * _P1 + _P4) & _MASK
        place, left = place + 8, left - 8
    if left >= 4:
        total ^= struct.unpack_from("<I", data, place)[0] * _P1 & _MASK
        total = (_rotated(total, 23) * _P2 + _P3) & _MASK
        place, left = place + 4, left - 4
    for byte in data[place:]:
        total ^= byte * _P5 & _MASK
        total = _rotated(total, 11) * _P1 & _MASK
    for shift, factor in ((33, _P2), (29, _P3), (32, 1)):
        total = (total ^ (total >> shift)) * factor & _MASK
    return total


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def spark_hash(*parts: bytes) -> int:
    """Return the signed hash of columns, each given as its bytes; one seeds the next."""
    value = 42
    for part in parts:
        value = xxh64(part, value)
    return value - (1 << 64) if value >> 63 else value


def short_number(value: int) -> bytes:
    return struct.pack("<i", value)


def long_number(value: int) -> bytes:
    return struct.pack("<q", value)


def id_key(name: str) -> bytes:
    return long_number(spark_hash(name.encode()))


def split_order(seed: int, user_id: str, item_id: str) -> int:
    return spark_hash(short_number(seed), b"split", id_key(user_id), id_key(item_id))


def split(
    own: Iterable[Rating],
    user_id: str,
    item_ids: Mapping[int, str],
    settings: PrepareConfig,
    seed: int,
) -> tuple[list[Rating], list[Rating]]:
    """Return the training and the held-out part of one user's ratings."""
    in_hash_order = sorted(own, key=lambda r: split_order(seed, user_id, item_ids[r[1]]))
    n = len(in_hash_order)
    if settings.split in ("global", "global_k_fold"):
        held = [_is_drawn(settings, seed, user_id, item_ids[r[1]]) for r in in_hash_order]
        parts: tuple[list[Rating], list[Rating]] = ([], [])
        for rating, is_held_out in zip(in_hash_order, held, strict=True):
            parts[is_held_out].append(rating)
        return parts
    if settings.split == "k_fold":
        return _fold(in_hash_order, user_id, settings, seed)
    if settings.split == "leave_last":
        n_train = max(1, n - settings.leave_last)
    else:
        n_train = math.ceil(Fraction(repr(settings.train_share)) * n)
        if settings.train_share < 1:
            n_train = max(1, min(n_train, n - 1))
    if settings.split != "random":
        in_hash_order.sort(key=lambda r: r[3] or 0)  # a stable sort: ties stay in hash order
    return in_hash_order[:n_train], in_hash_order[n_train:]


def _is_drawn(settings: PrepareConfig, seed: int, user_id: str, item_id: str) -> bool:
    value = spark_hash(short_number(seed), b"fold", id_key(user_id), id_key(item_id))
    if settings.split == "global_k_fold":
        return value % settings.folds == settings.fold - 1
    return Fraction((value & _MASK) >> 11, 1 << 53) >= Fraction(repr(settings.train_share))


def _fold(
    ordered: Sequence[Rating], user_id: str, settings: PrepareConfig, seed: int
) -> tuple[list[Rating], list[Rating]]:
    shift = spark_hash(short_number(seed), b"fold", id_key(user_id)) % settings.folds
    train: list[Rating] = []
    held_out: list[Rating] = []
    turn = (settings.fold - 1 + shift) % settings.folds
    for place, rating in enumerate(ordered):
        part = held_out if place % settings.folds == turn and len(ordered) > 1 else train
        part.append(rating)
    return train, held_out


def filtered(
    ratings: Iterable[Rating], filters: Sequence[FilterConfig], rounds: int
) -> tuple[set[Rating], list[tuple[int, int, int]]]:
    """Return what stays, and (ratings, users, items) after every step."""
    left, sizes = set(ratings), []
    for _ in range(rounds):
        before = len(left)
        for entry in filters:
            users, items = Counter(r[0] for r in left), Counter(r[1] for r in left)
            left = {
                r
                for r in left
                if (entry.user_min or 0) <= users[r[0]] <= (entry.user_max or math.inf)
                and (entry.item_min or 0) <= items[r[1]] <= (entry.item_max or math.inf)
            }
            sizes.append((len(left), len({r[0] for r in left}), len({r[1] for r in left})))
        if len(left) == before:
            break
    return left, sizes


def in_share(user_id: str, share: float, seed: int) -> bool:
    value = spark_hash(short_number(seed), b"user_share", id_key(user_id)) & _MASK
    return Fraction(value >> 11, 1 << 53) < Fraction(share)
