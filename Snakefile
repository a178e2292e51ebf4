# The sweep, run from this folder: snakemake --cores all
# Everything stands in workflow/Snakefile, which other workflows can use as a module too.


include: "workflow/Snakefile"


# `snakemake` without a target makes this: the first rule of an included file is no default.
rule sweep:
    default_target: True
    input:
        rules.all.input,
