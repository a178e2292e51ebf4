# The sweep, run from this folder: snakemake --cores all
# The workflow is defined in workflow/Snakefile, which other workflows can also use as a module.


include: "workflow/Snakefile"


# The default target, because the first rule of an included file is not used as the default.
rule sweep:
    """All files of a finished sweep."""
    default_target: True
    input:
        rules.all.input,
    localrule: True
