"""The papers' data sets and their paths in the data folder; the package contains none of them."""

from __future__ import annotations

from spark_rank.experiments.frame import RatingFile

EACHMOVIE = RatingFile(
    "EachMovie", ("eachmovie/vote.txt", "eachmovie/vote.txt.gz", "eachmovie/Vote.txt"), "eachmovie"
)
MOVIELENS_1M = RatingFile(
    "MovieLens-1M", ("ml-1m/ratings.dat", "ml-1m/ratings_notime.dat.gz"), "movielens-dat"
)
MOVIELENS_100K = RatingFile("MovieLens-100K", ("ml-100k/u.data",), "movielens-100k")
JESTER = RatingFile("Jester", ("jester/jester-data-1.csv", "jester/jester-data-1.csv.gz"), "jester")
CYSTIC_FIBROSIS = RatingFile("cystic fibrosis", ("cystic-fibrosis/cfquery",), "judgments")
# as a table: query, document, and a column per judge
OHSUMED = RatingFile("OHSUMED", ("ohsumed/judgments.tsv",), "judgments")
NETFLIX = RatingFile("Netflix", ("netflix/mv_*.txt", "netflix/combined_data_*.txt"), "netflix")
BOOK_CROSSING = RatingFile("Book-Crossing", ("book-crossing/BX-Book-Ratings.csv",), "book-crossing")
