# Sourced by the scripts that install a server for tests through Maven; they set
#   WHAT  what could not be installed
#   IT    what comes from Maven's repository
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: $WHAT could not be installed: $1"
    say "It is $IT from Maven's repository. Install Maven and run this again:"
    say "  Debian, Ubuntu   sudo apt-get install maven"
    say "  Fedora, RHEL     sudo dnf install maven"
    say "  macOS            brew install maven"
    exit 1
}

ensure_maven() {
    command -v mvn >/dev/null && return
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null || fail "there is no mvn."
    say "No Maven found: installing it with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    mkdir -p /usr/share/man/man1
    { apt-get update -q && apt-get install -q -y --no-install-recommends maven; } >&2 ||
        fail "apt-get could not install maven (see above)."
}
