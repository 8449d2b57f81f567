"""``python -m spark_rank`` is ``spark-rank``."""

import sys

from spark_rank.cli import main

if __name__ == "__main__":
    sys.exit(main())
