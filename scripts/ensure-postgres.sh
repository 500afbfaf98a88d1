#!/usr/bin/env bash
# Prints the folder with the programs of a PostgreSQL server (initdb, postgres); installs it where it may.
#
# Tests start a server of their own on loopback, in a temporary folder and never as root.
# Only the folder goes to stdout; everything a person should read goes to stderr.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

found() {
    local candidate
    # Debian has a folder for each version and puts none of them on PATH
    for candidate in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) \
        "$(dirname "$(command -v initdb || echo /nowhere/initdb)")"; do
        if [[ -x "$candidate/initdb" && -x "$candidate/postgres" ]]; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

if ! found; then
    if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
        say "No PostgreSQL found: installing it with apt-get."
        export DEBIAN_FRONTEND=noninteractive
        # No cluster of the machine's own: tests make theirs
        mkdir -p /etc/postgresql-common/createcluster.d
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/none.conf
        { apt-get update -q && apt-get install -q -y --no-install-recommends postgresql; } >&2 || true
        found && exit 0
    fi
    say "error: the PostgreSQL server for tests is not there. Install it and run this again:"
    say "  Debian, Ubuntu   sudo apt-get install postgresql"
    say "  Fedora, RHEL     sudo dnf install postgresql-server"
    say "  macOS            brew install postgresql"
    exit 1
fi
