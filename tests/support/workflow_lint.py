"""``snakemake --lint`` without the request for an environment in every rule (``make lint``).

Jobs run in the environment of Snakemake, because both must use the same installed package.
Snakemake has no option that disables a single message.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ACCEPTED = "Specify a conda environment or container for each rule.:"
CLEAN = "Congratulations, your workflow is in a good condition!"


def lints(output):
    """The messages in the output of ``snakemake --lint``, each with the rule or file it is about.

    Raises ValueError if the output is not that of a lint, such as an error of the workflow.
    """
    blocks = re.split(r"^Lints for (.*):$", output, flags=re.M)
    if len(blocks) == 1 and CLEAN not in output:
        raise ValueError(output)
    return [
        f"{place}: {title}"
        for place, text in zip(blocks[1::2], blocks[2::2], strict=True)
        for title in re.findall(r"^    \* (.*)$", text, re.M)
        if title != ACCEPTED
    ]


def main():
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--lint"]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    try:
        found = lints(done.stderr)
    except ValueError as error:
        sys.exit(f"snakemake --lint failed:\n{error}")
    if found:
        sys.exit("\n".join([done.stderr, "snakemake --lint found:", *found]))


if __name__ == "__main__":
    main()
