"""`python -m irrun`: the command line."""

from irrun.cli import main

main(prog_name="irrun")
