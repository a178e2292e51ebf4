"""What only the Snakemake workflow needs."""
