#!/bin/sh
# Prints the status of a job of Grid Engine: running, success or failed. jobscript.sh leaves a file if a job
# succeeds; without it, a job that left the queue was killed or failed.
# For other schedulers, replace qstat and its messages here, and JOB_ID in jobscript.sh.
LC_ALL=C
export LC_ALL
case $(qstat -j "$1" 2>&1) in
  *"do not exist"*) ;;
  *"error reason"*) echo failed && exit ;;  # state Eqw: never starts, stays in the queue
  *) echo running && exit ;;                # also if qstat did not get an answer: asked again later
esac
# a file of another computer can be visible later than the end of its job
for _ in 1 2 3 4 5; do
  ls .snakemake/succeeded > /dev/null 2>&1
  [ -e ".snakemake/succeeded/$1" ] && rm -f ".snakemake/succeeded/$1" && echo success && exit
  sleep "${STATUS_WAIT:-2}"
done
echo failed
