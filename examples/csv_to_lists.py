"""From a CSV of ratings to a list for every user: ``python examples/csv_to_lists.py ratings.csv``.

The file needs a column each for user, item and rating; a time is optional. Names, delimiter and
format of the times are recognised. Without a file, a small one is generated first.

The pipeline reads the file, sets unusable lines aside, learns what items look like and one model
for every user, and measures the models on ratings that it has held back. Then it makes a list of
unseen items for every user. All results are Parquet files in a folder, which is asked at the end.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from pathlib import Path

from spark_rank import Recommender
from spark_rank.cli import main as spark_rank


def write_ratings(path: Path, users: int = 200, items: int = 120) -> None:
    """Write ratings of made-up people: everybody likes one half of the films a little better."""
    rng = random.Random(1)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "rating"])
        for user in range(users):
            for item in rng.sample(range(items), 40):
                liked = 1 if (user + item) % 2 else -1
                rating = round(3 + liked + rng.gauss(0, 0.7))
                rows.writerow([f"u{user}", f"film {item}", min(5, max(1, rating))])


def make_lists(ratings: Path, store: Path, run_id: str = "mine") -> Recommender:
    """Run the pipeline on the file; return the finished run."""
    settings = [f"input.path={ratings}", f"store={store}", f"run_id={run_id}", "recommend.top=5"]
    exit_code = spark_rank(["pipeline", "--set", *settings])
    if exit_code != 0:
        sys.exit(exit_code)  # the command has said what is wrong
    return Recommender.open(store / "runs" / f"run_id={run_id}")


def show(run: Recommender, user: str) -> None:
    """Print one user's list."""
    print(f"\nthe best unseen items of user {user}")
    for row in run.recommend(user, 5):
        print(f"{row['position']}  {row['item_id']:<10}  {row['predicted_rating']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ratings in a CSV file to lists.")
    parser.add_argument("ratings", nargs="?", type=Path, help="CSV file (default: a generated one)")
    parser.add_argument("--store", type=Path, default=Path("store"), help="folder of all runs")
    parser.add_argument("--user", default="u0", help="whose list to print (default: %(default)s)")
    options = parser.parse_args()
    if options.ratings is None:
        options.ratings = options.store / "generated.csv"
        options.store.mkdir(parents=True, exist_ok=True)
        write_ratings(options.ratings)
    show(make_lists(options.ratings, options.store), options.user)
