"""spark-submit jobs/predictions.py --config conf/<file>.yaml [--set key=value ...]."""

import sys

from spark_rank.cli import run_job

if __name__ == "__main__":
    sys.exit(run_job("predictions"))
