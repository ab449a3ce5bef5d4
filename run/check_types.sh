#!/usr/bin/env bash
# Check the types of all packages with mypy, under their installed names. Arguments go to mypy:
#   bash run/check_types.sh -p lcat_core
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
# mypy does not follow the import hooks of an editable installation, so it gets the packages as symbolic links.
mkdir -p build/packages
for pair in graphgym_lcat:graphgym_lcat core:lcat_core run:lcat_run analysis:lcat_analysis benchmarks:lcat_benchmarks \
    configs:lcat_configs grids:lcat_grids; do
    ln -sfn "$root/${pair%%:*}" "build/packages/${pair##*:}"
done
export MYPYPATH="$root/build/packages"
exec "${PYTHON:-$root/.venv/bin/python}" -m mypy "$@"
