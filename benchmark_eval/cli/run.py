"""``benchmark-eval run``: run the workflow of this package with Snakemake."""

from __future__ import annotations

import os
import sys

import click

from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues


class _Run(CommandWithSeveralValues):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} Options of Snakemake follow after --."
            raise click.UsageError(message, ctx) from None


@click.command("run", cls=_Run)
@click.option(
    "--configfile",
    "configfiles",
    cls=SeveralValues,
    metavar="FILE...",
    help="Used instead of config/config.yaml. Of several files, later ones take precedence.",
)
@click.option("-c", "--cores", metavar="N", help="Number of cores, or all. Default: all.")
@click.option("-n", "--dry-run", is_flag=True, help="Only list the jobs that would run.")
@click.argument(
    "snakemake_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SNAKEMAKE_OPTIONS]"
)
def command(
    configfiles: tuple[str, ...],
    cores: str | None,
    dry_run: bool,
    snakemake_options: tuple[str, ...],
) -> None:
    r"""Run a sweep in the current folder, with the workflow that this package contains.

    All other options of Snakemake, and targets, follow after --:

    \b
      benchmark-eval run -- --config iou=0.75
      benchmark-eval run -- --workflow-profile slurm
      benchmark-eval run --cores 16 -- tables
    """
    from benchmark_eval.pipeline.workflow_files import snakemake_command

    options = [*(["--dry-run"] if dry_run else []), *snakemake_options]
    arguments = snakemake_command(options, configfiles=configfiles, cores=cores)
    # Snakemake replaces this process, so its exit code and all signals are those of Snakemake.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(arguments[0], arguments)
