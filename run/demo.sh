#!/usr/bin/env bash
# Sweep grids/demo.yaml (eight models on generated graphs of six degrees, five seeds; no download), print the table and
# write the report. The first call creates .venv with the pinned versions and this package.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
lcat="$root/.venv/bin/lcat"
"$lcat" sweep demo
echo
"$lcat" table demo
echo
"$lcat" report demo
