"""How large users' blocks are: told by the footers of their files, and added up by the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_MOST = "most_ratings_of_a_user"


def block_sizes(blocks: pa.Table) -> str:
    """Return, as JSON, the facts about the sizes of some blocks."""
    n_train, sizes = blocks.column("n_train"), pc.list_value_length(blocks.column("items"))
    train, total = pc.sum(n_train).as_py(), pc.sum(sizes).as_py()
    return json.dumps({
        "train_ratings": train,
        "test_ratings": total - train,
        _MOST: pc.max(sizes).as_py(),
        "users_with_nothing_held_out": pc.sum(pc.equal(n_train, sizes)).as_py(),
    })  # fmt: skip


def all_sizes(summaries: Sequence[str]) -> dict[str, int]:
    """Return the facts about all blocks from those about the blocks of every file."""
    found = [json.loads(summary) for summary in summaries]
    return {
        name: (max if name == _MOST else sum)(part[name] for part in found) for name in found[0]
    }
