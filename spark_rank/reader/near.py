"""Suggests ids that are spelled almost like an unknown one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_NEAR = 3  # ids suggested for an unknown one
_LONGEST = 64  # letters compared of each id


def did_you_mean(wanted: str, ids: Sequence[str]) -> str:
    """Return ``did you mean …`` with the ids of the least edit distance."""
    if not ids:
        return "there are none"
    changes = letters_to_change(wanted, ids)
    order = sorted(np.flatnonzero(changes <= np.sort(changes)[:_NEAR][-1]).tolist(),
                   key=lambda place: (changes[place], ids[place]))[:_NEAR]  # fmt: skip
    return f"did you mean {' or '.join(repr(ids[place]) for place in order)}?"


def letters_to_change(wanted: str, ids: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """Return the Levenshtein distance of every id to `wanted`, computed for all ids at once."""
    lengths = np.minimum([len(each) for each in ids], _LONGEST)
    letters = np.array(ids, dtype=f"U{max(1, lengths.max())}").view(np.uint32)
    letters = letters.reshape(len(ids), -1)
    width = letters.shape[1]
    before = np.tile(np.arange(width + 1), (len(ids), 1))
    for place, letter in enumerate(wanted[:_LONGEST], start=1):
        after = np.empty_like(before)
        after[:, 0] = place
        substituted = before[:, :-1] + (letters != ord(letter))
        after[:, 1:] = np.minimum(substituted, before[:, 1:] + 1)
        for column in range(1, width + 1):
            np.minimum(after[:, column], after[:, column - 1] + 1, out=after[:, column])
        before = after
    return np.asarray(before[np.arange(len(ids)), lengths])
