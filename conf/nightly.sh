#!/bin/sh
# A night's work, for cron and systemd: a run named after the day is made, which goes on from the one
# that consumers have. It is measured on ratings that are held out, and its lists are from all (stage
# `refit`). The run is read back, pointed to, and what is old goes. The night ends with the first
# command that fails and with its exit code: consumers then stay with the run that they have, and
# nothing is deleted.
#   conf/nightly.sh [CONFIG]
set -eu
config=${1:-conf/nightly.yaml}
# asked once: the night may end on another day
day=$(date +%F)

spark_rank() {
  .venv/bin/spark-rank "$@" --config "$config" --log-format json
}

spark_rank pipeline --set run_id="$day" previous=latest
spark_rank runs verify --run "$day"
spark_rank runs promote "$day"
spark_rank runs prune --keep 14 --older-than 30 --yes
spark_rank history --delete-older-than 30
