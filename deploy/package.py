"""Make what a cluster needs: the wheel, a packed Python environment, the jobs and configurations.

python -m deploy.package build/package [--interpreter /usr/bin/python3.11]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.archive import PackageError, write_archive
from deploy.environment import environment, own_interpreter

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "conf" / "requirements.lock"
ARCHIVE = "environment.tar.gz"
# what is beside the archive: the commands of spark-submit, and configurations to begin with
_BESIDE = ("jobs/*.py", "conf/*.yaml", "conf/*.conf", "conf/paper/*.yaml")
# the earliest time that a wheel can hold
_TIME = "315532800"
# machine code packs no better at higher ones, which take several times as long
_LEVEL = 1


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel, from a copy: what an older build has left is not in it."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        copy = Path(temporary)
        shutil.copytree(ROOT / "spark_rank", copy / "spark_rank",
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, copy)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
                   "--no-build-isolation", "--disable-pip-version-check",
                   "--wheel-dir", str(copy / "dist"), str(copy)]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": _TIME})
        (built,) = (copy / "dist").glob("*.whl")
        return Path(shutil.move(built, folder / built.name))


def make_package(folder: Path, interpreter: Path) -> Path:
    """Fill an empty folder; return the archive, which is written last."""
    wheel = build_wheel(folder)
    for pattern in _BESIDE:
        for source in sorted(ROOT.glob(pattern)):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    archive = folder / ARCHIVE
    write_archive(archive, environment(wheel, LOCK, interpreter), _LEVEL)
    return archive


def main() -> int:
    """Make the package that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.package", description=__doc__)
    parser.add_argument("folder", type=Path, help="where it goes; what is there is replaced")
    parser.add_argument(
        "--interpreter", type=Path, default=own_interpreter(),
        help="where the machines of the cluster have this version of Python "
        "(default: %(default)s, as here)",
    )  # fmt: skip
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    try:
        archive = make_package(options.folder, options.interpreter)
    except (PackageError, subprocess.CalledProcessError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB, for {options.interpreter}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
