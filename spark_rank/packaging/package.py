"""Make the package for a cluster: wheel, packed Python environment, jobs and configurations.

python -m spark_rank.packaging.package build/package [--interpreter /usr/bin/python3.11]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spark_rank.packaging.archive import PackageError, write_archive
from spark_rank.packaging.environment import environment, own_interpreter

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "conf" / "requirements.lock"
ARCHIVE = "environment.tar.gz"
# files beside the archive: the jobs for spark-submit, and configurations to begin with
_BESIDE = ("jobs/*.py", "conf/*.yaml", "conf/*.conf", "conf/paper/*.yaml")
# the earliest time that a wheel's files can have
_TIME = "315532800"
# higher levels take several times as long and do not make machine code smaller
_LEVEL = 1


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel from a copy of the sources, without files of older builds."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        copy = Path(temporary)
        shutil.copytree(ROOT / "spark_rank", copy / "spark_rank",
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        for name in ("pyproject.toml", "README.md", "LICENSE"):
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


def clear(folder: Path) -> None:
    """Make an empty folder; it may replace an older package, but no other files."""
    if folder.is_dir() and any(folder.iterdir()) and not list(folder.glob("spark_rank-*.whl")):
        raise PackageError(f"{folder} is not empty and not a package: name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def main() -> int:
    """Make the package that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_rank.packaging.package", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="where to write; an older package is replaced")
    parser.add_argument(
        "--interpreter", type=Path, default=own_interpreter(),
        help="path of this version of Python on the machines of the cluster "
        "(default: %(default)s, as here)",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        clear(options.folder)
        archive = make_package(options.folder, options.interpreter)
    except (PackageError, subprocess.CalledProcessError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB, for {options.interpreter}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
