#!/bin/sh
# The nightly job for cron and systemd. It makes a run named after the day, which keeps what it can of
# the promoted run. Metrics are measured on held-out ratings, and the lists come from all ratings
# (stage `refit`). Then it verifies and promotes the run, and deletes old runs. The job ends with the
# first command that fails, and with its exit code: consumers then keep the run that they have, and
# nothing is deleted.
#   conf/nightly.sh [CONFIG]
set -eu
config=${1:-conf/nightly.yaml}
# read once: the job may end on another day
day=$(date +%F)

spark_rank() {
  .venv/bin/spark-rank "$@" --config "$config" --log-format json
}

spark_rank pipeline --set run_id="$day" previous=latest
spark_rank runs verify --run "$day"
spark_rank runs promote "$day"
spark_rank runs prune --keep 14 --older-than 30 --yes
spark_rank history --delete-older-than 30
