"""Every speed figure of the learners, each a ratio measured in one run on one thread.

Run: ``python benchmarks/learners.py`` (some minutes), or one of the scripts it starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = ("learners_mprank.py", "learners_online.py", "learners_pairs.py", "learners_starts.py")


def main() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    for script in SCRIPTS:
        print(f"== {script}", flush=True)
        path = Path(__file__).with_name(script)
        subprocess.run([sys.executable, str(path)], check=True, env=environment)


if __name__ == "__main__":
    main()
