#!/bin/sh
# Run a job; again, up to three times, only if storage or the cluster failed: run.sh JOB.yaml [OPTIONS OF dpmask run]
# ${MONTH} in the job file, or in an option --set, is this month unless MONTH says another: each gets a release of its own.
export MONTH="${MONTH:-$(date -u +%Y-%m)}"
stopped=
trap 'stopped=yes' TERM INT                 # dpmask gets the signal, too, and has time to end
"${DPMASK:-dpmask}" run "$@"
code=$?
for _ in 1 2 3; do
  [ "$code" -eq 5 ] || break                # 0 is done; 2, 3 and 4 would end the same way again
  sleep "${DPMASK_RETRY_SECONDS:-600}"
  [ -z "$stopped" ] || break
  "${DPMASK:-dpmask}" run "$@" --resume     # goes on where it stopped
  code=$?
done
exit "$code"
