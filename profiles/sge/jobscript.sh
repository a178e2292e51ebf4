#!/bin/sh
# properties = {properties}
# A job that succeeds leaves a file, which status.sh looks for.
( {exec_job} ) || exit 1
mkdir -p .snakemake/succeeded && touch ".snakemake/succeeded/$JOB_ID"
