#!/usr/bin/env bash
# Makes sure of the browsers that tests of the page drive, and prints the folder of axe-core, which checks accessibility.
#
# Chromium with its driver and Firefox come from Debian's packages; axe-core (MPL-2.0) comes through npm, as that is
# configured on this machine, and stays in the user's cache. Only the folder goes to stdout.
set -euo pipefail

readonly AXE=4.11.0
readonly CACHE="${ANABRANCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/anabranch}"
readonly HOME_OF_AXE="$CACHE/axe-core-$AXE"

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: the browsers for tests could not be installed: $1"
    say "  Debian   sudo apt-get install chromium chromium-driver firefox-esr npm"
    exit 1
}

missing=()
command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing+=(chromium chromium-driver)
command -v firefox-esr >/dev/null || missing+=(firefox-esr)
[[ -f "$HOME_OF_AXE/axe.min.js" ]] || command -v npm >/dev/null || missing+=(npm)
if ((${#missing[@]})); then
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null || fail "missing: ${missing[*]}."
    say "Installing ${missing[*]} with apt-get."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } >&2 ||
        fail "apt-get could not install ${missing[*]} (see above)."
fi
if [[ ! -f "$HOME_OF_AXE/axe.min.js" ]]; then
    mkdir -p "$CACHE" || fail "$CACHE cannot be made."
    building="$(mktemp -d "$CACHE/.axe.XXXXXX")"
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$building'" EXIT
    (cd "$building" && npm pack --silent "axe-core@$AXE" >&2 && tar -xzf ./*.tgz) || fail "npm failed (see above)."
    # Two that install at once make the same; whoever comes second keeps what is there.
    mv -T "$building/package" "$HOME_OF_AXE" 2>/dev/null || [[ -f "$HOME_OF_AXE/axe.min.js" ]] ||
        fail "it could not be put into $CACHE."
fi
printf '%s\n' "$HOME_OF_AXE"
