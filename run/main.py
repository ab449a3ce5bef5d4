"""`python run/main.py --cfg FILE [--repeat N] [key value …]`: GraphGym's usual entry point for the same training as `lcat run`."""

import sys

from lcat_run.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
