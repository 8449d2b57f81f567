"""Every user is in exactly one group."""

from __future__ import annotations

import numpy as np

from spark_rank.users.user_groups import UserGroups


def test_groups_cover_all_sizes_once() -> None:
    groups = UserGroups(3, (10, 4, 20, 2))
    assert groups.names() == ("cold", "3", "4-9", "10-19", "20+")
    found = groups.of(np.arange(30, dtype=np.int32)).to_pylist()
    expected = {**dict.fromkeys(range(3), "cold"), 3: "3", **dict.fromkeys(range(4, 10), "4-9"),
                **dict.fromkeys(range(10, 20), "10-19"),
                **dict.fromkeys(range(20, 30), "20+")}  # fmt: skip
    assert dict(enumerate(found)) == expected


def test_without_starts_there_are_cold_users_and_others() -> None:
    groups = UserGroups(5, ())
    assert groups.names() == ("cold", "5+")
    assert groups.of(np.array([5, 4])).to_pylist() == ["5+", "cold"]
