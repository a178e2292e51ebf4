"""Modules used only by the Snakemake workflow: planning, fingerprints and jobs."""
