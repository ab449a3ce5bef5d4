#!/usr/bin/env bash
# Check style, types and tests in .venv, which is created on the first call. Arguments go to pytest, and then the type
# check (half a minute) is skipped, so that a selection of tests starts at once:
#   bash run/test.sh -m "not slow"
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
echo "== ruff"
"$PYTHON" -m ruff check .
"$PYTHON" -m ruff format --check --quiet .
if [ $# -eq 0 ]; then
    echo "== mypy"
    bash run/check_types.sh
fi
echo "== pytest"
# One process per core; a -n among the arguments takes precedence.
exec "$PYTHON" -m pytest -n logical --dist loadfile "$@"
