#!/usr/bin/env bash
# Prints the home of a Java that can run Spark; installs one where it may.
#
# Spark prefers JAVA_HOME to the java on PATH, so callers export what this prints:
#     JAVA_HOME="$(scripts/ensure-java.sh)" && export JAVA_HOME
# Only the home goes to stdout; everything a person should read goes to stderr.
set -euo pipefail

readonly MINIMUM=17
# Spark starts its JVM with this module; some reduced Java builds leave it out.
readonly MODULE=jdk.incubator.vector
readonly JVM_DIR="${ANABRANCH_JVM_DIR:-/usr/lib/jvm}"

rejected=()

say() { printf '%s\n' "$*" >&2; }

# accept JAVA: sets home to the home of that java if Spark can use it, else notes why it cannot.
home=""
accept() {
    local java="$1" settings version
    home=""
    if [[ ! -x "$java" ]]; then
        rejected+=("$java: not there, or not executable")
        return 1
    fi
    if ! settings="$("$java" -XshowSettings:properties -version 2>&1)"; then
        rejected+=("$java: does not start")
        return 1
    fi
    version="$(sed -n 's/^ *java\.specification\.version = \([0-9.]*\).*/\1/p' <<<"$settings")"
    version="${version#1.}" # Java 8 calls itself 1.8
    version="${version%%.*}"
    if [[ ! "$version" =~ ^[0-9]+$ ]]; then
        rejected+=("$java: does not tell its version")
        return 1
    fi
    if ((version < MINIMUM)); then
        rejected+=("$java: Java $version, too old")
        return 1
    fi
    if ! "$java" --list-modules 2>/dev/null | grep "^$MODULE" >/dev/null; then
        rejected+=("$java: Java $version without the module $MODULE")
        return 1
    fi
    home="$(sed -n 's/^ *java\.home = //p' <<<"$settings")"
    [[ -n "$home" ]]
}

# find_java: sets home to the first usable of JAVA_HOME, PATH and the system's folder of JVMs.
find_java() {
    local java
    rejected=()
    if [[ -n "${JAVA_HOME:-}" ]] && accept "$JAVA_HOME/bin/java"; then
        return 0
    fi
    if java="$(command -v java)" && accept "$java"; then
        return 0
    fi
    for java in "$JVM_DIR"/*/bin/java; do
        if [[ -x "$java" ]] && accept "$java"; then
            return 0
        fi
    done
    return 1
}

may_install() {
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null
}

install_java() {
    local version package
    export DEBIAN_FRONTEND=noninteractive
    say "No Java $MINIMUM or newer found: installing one with apt-get."
    apt-get update -q >&2 || return 1
    # Newer releases of Debian carry a newer Java only.
    for version in 17 21 25; do
        package="openjdk-$version-jre-headless"
        if apt-cache show "$package" >/dev/null 2>&1; then
            # Slim images lack the folder that the package links its manual pages into.
            mkdir -p /usr/share/man/man1
            apt-get install -q -y --no-install-recommends "$package" >&2
            return
        fi
    done
    say "apt-get knows no package openjdk-{17,21,25}-jre-headless."
    return 1
}

fail() {
    say "error: Spark needs Java $MINIMUM or newer, and $1"
    local why
    # The long form is for the bash 3 of macOS, where an empty array counts as unset.
    for why in ${rejected[@]+"${rejected[@]}"}; do
        say "  $why"
    done
    say "Install one and run this again:"
    say "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless"
    say "  Fedora, RHEL     sudo dnf install java-17-openjdk-headless"
    say "  macOS            brew install openjdk@17"
    say "or point JAVA_HOME to one that is already on this machine."
    exit 1
}

if ! find_java; then
    may_install || fail "none was found."
    install_java || fail "installing it failed (see above)."
    find_java || fail "none was found after installing it."
fi
printf '%s\n' "$home"
