# Sourced by demo.sh and test.sh: creates .venv with the pinned versions and this package, and sets PYTHON to its python.
# The next call changes nothing unless a file that the installation depends on has changed.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
PYTHON="$root/.venv/bin/python"

find_python() {
    local candidate
    for candidate in "${LCAT_PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer was not found; install it, or set LCAT_PYTHON to its path" >&2
    return 2
}

make_environment() {
    local python stamp wanted pip
    pip=(-m pip install --disable-pip-version-check)
    [ -t 1 ] || pip+=(--quiet) # pip shows its progress only on a terminal
    stamp="$root/.venv/installed"
    wanted="$(cat "$root"/requirements.txt "$root"/setup.cfg "$root"/setup.py "$root"/graphgym_lcat/kernels/csrc/* 2>/dev/null |
        cksum) $root"
    if [ -x "$PYTHON" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    python="$(find_python)" || return
    echo "== creating .venv with $("$python" --version)"
    if ! "$python" -m venv "$root/.venv"; then
        echo "Python cannot create a virtual environment here; on Debian and Ubuntu: apt-get install python3-venv" >&2
        return 2
    fi
    echo "== installing the packages of requirements.txt, which takes a few minutes"
    # torch first: the other packages accept any version of it, so pip could choose a larger build for them.
    "$PYTHON" "${pip[@]}" "$(grep '^torch==' "$root/requirements.txt")"
    "$PYTHON" "${pip[@]}" -r "$root/requirements.txt"
    echo "== installing graphgym-lcat and compiling its kernels"
    "$PYTHON" "${pip[@]}" --quiet --no-build-isolation --no-deps -e "$root"
    echo "$wanted" >"$stamp"
}

make_environment
