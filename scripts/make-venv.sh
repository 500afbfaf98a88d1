#!/usr/bin/env bash
# Makes the virtual environment given as $1 and installs the project with its exact versions.
#
# An environment that is already there is kept if its Python still suits. PYTHON names another
# interpreter than python3.11 or python3.
set -euo pipefail

venv="${1:?usage: make-venv.sh FOLDER}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }

suits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate candidates=(python3.11 python3)
    # A PYTHON that was named and does not suit is an error, not a reason to take another.
    if [[ -n "${PYTHON:-}" ]]; then
        candidates=("$PYTHON")
    fi
    for candidate in "${candidates[@]}"; do
        if suits "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    say "error: Python 3.11 or newer is needed; tried: ${candidates[*]}"
    say "Install it (Debian, Ubuntu: sudo apt-get install python3 python3-venv),"
    say "or name one that is on this machine: make setup PYTHON=/path/to/python3.11"
    return 1
}

if ! suits "$venv/bin/python"; then
    python="$(find_python)"
    # Debian keeps ensurepip in a package of its own, and venv fails half-way without it.
    has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
    if ! has_venv && [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
        say "Installing python3-venv."
        apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >&2 || true
    fi
    if ! has_venv; then
        say "error: $python cannot make virtual environments: its venv module is missing."
        say "Install it (Debian, Ubuntu: sudo apt-get install python3-venv) and run this again."
        exit 1
    fi
    say "Making $venv with $("$python" --version)."
    "$python" -m venv --clear "$venv"
fi

say "Installing into $venv; the first time this takes a minute or more (PySpark is 400 MB)."
install=("$venv/bin/python" -m pip install --disable-pip-version-check -e ".[dev,all]" -c constraints.txt)
if ! "${install[@]}" -qq; then
    say "error: the install failed. To see every step of it: ${install[*]}"
    exit 1
fi
