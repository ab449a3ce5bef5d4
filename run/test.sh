#!/usr/bin/env bash
# Makes .venv, installs the pinned versions and this package, and runs the tests. Arguments go to pytest:
#   bash run/test.sh -m "not slow"
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
echo "== ruff"
"$PYTHON" -m ruff check .
"$PYTHON" -m ruff format --check --quiet .
echo "== pytest"
exec "$PYTHON" -m pytest "$@"
