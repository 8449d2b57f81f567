"""Score and list with DuckDB alone: ``python examples/score_with_duckdb.py RUN USER``.

RUN is the folder of a finished run, such as store/runs/run_id=default after `make run`. A linear
model is a row of numbers: weights on the features of items, and a constant. Its score of an item
is one dot product, which any database can compute. Nothing of spark_rank is imported here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

UNSEEN = """
with model as (
    select * from read_parquet($models)
    where user_id = $user and learner = $learner and kernel = 'linear'
), seen as (
    select unnest(items) as item from read_parquet($blocks) where user_id = $user
)
select f.item_id,
       m.intercept + m.offset_weight * f."offset"
         + list_dot_product(m.weights::double[], f.features::double[]) as score
from model m, read_parquet($features) f
where f.item not in (select item from seen)
order by score desc, f.item
limit $count
"""


def best_items(
    run: Path, user: str, learner: str = "mprank_linear", count: int = 5
) -> list[tuple[Any, ...]]:
    """Return the unseen items with the highest scores of the user's model, the best first."""
    import duckdb

    # models from all ratings, where the run has learned them for its lists
    prefix = "final_" if (run / "final_models").is_dir() else ""
    asked = {
        "models": f"{run}/{prefix}models/*.parquet",
        "features": f"{run}/{prefix}item_features/*.parquet",
        "blocks": f"{run}/blocks/**/*.parquet",
        "user": user, "learner": learner, "count": count,
    }  # fmt: skip
    return duckdb.execute(UNSEEN, asked).fetchall()


def main() -> int:
    """Print a user's list; without DuckDB, say how to get it."""
    parser = argparse.ArgumentParser(description="One user's list, by DuckDB.")
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("user", help="a user's id, as in the input")
    parser.add_argument("--learner", default="mprank_linear", help="label (default: %(default)s)")
    options = parser.parse_args()
    try:
        found = best_items(options.run, options.user, options.learner)
    except ImportError:
        print("skipped: DuckDB is not installed; `pip install duckdb` brings it")
        return 0
    for item, score in found:
        print(f"{item:<10}  {score:.3f}")
    if not found:
        print(f"no linear model of {options.learner} for user {options.user}", file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
