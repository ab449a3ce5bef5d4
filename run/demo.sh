#!/usr/bin/env bash
# Makes .venv, installs the pinned versions and this package, sweeps grids/demo.yaml (generated graphs of six degrees, eight
# models, five seeds; no download), prints the table and says where the report is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
lcat="$root/.venv/bin/lcat"
"$lcat" sweep demo
echo
"$lcat" table demo
echo
"$lcat" report demo
