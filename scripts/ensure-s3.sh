#!/usr/bin/env bash
# Prints the folder of the S3 server that tests start on loopback; installs it where it is missing.
#
# The server is S3Proxy (Apache-2.0), which keeps objects as files of a folder and creates an object that
# must not exist yet by a hard link, so that of several writers one succeeds. It runs on the Java of Spark:
#     java -cp "$(scripts/ensure-s3.sh)/*" org.gaul.s3proxy.Main --properties FILE
# Its jars come through Maven, as that is configured on this machine, and stay in the user's cache.
# Only the folder goes to stdout; everything a person should read goes to stderr.
set -euo pipefail

readonly VERSION=4.1.0
# What S3Proxy is built with; without it Maven takes an older part of it from another library.
readonly JACKSON=3.2.2
readonly CACHE="${ANABRANCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/anabranch}"
readonly HOME_OF_IT="$CACHE/s3proxy-$VERSION"
readonly WHAT="the S3 server for tests" IT="S3Proxy $VERSION"

# shellcheck source=scripts/with-maven.sh
source "$(dirname "${BASH_SOURCE[0]}")/with-maven.sh"

install_server() {
    local building
    building="$(mktemp -d "$CACHE/.s3proxy.XXXXXX")"
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$building'" EXIT
    cat >"$building/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch</groupId>
  <artifactId>s3-server-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencyManagement>
    <dependencies>
      <dependency>
        <groupId>tools.jackson</groupId>
        <artifactId>jackson-bom</artifactId>
        <version>$JACKSON</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.gaul</groupId>
      <artifactId>s3proxy</artifactId>
      <version>$VERSION</version>
    </dependency>
  </dependencies>
</project>
EOF
    say "Installing the S3 server for tests (S3Proxy $VERSION, 60 MB) into $HOME_OF_IT."
    mvn -q -B -f "$building/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$building/lib" -DincludeScope=runtime >&2 || fail "Maven failed (see above)."
    # Two that install at once make the same; whoever comes second keeps what is there.
    mv -T "$building/lib" "$HOME_OF_IT" 2>/dev/null || [[ -d "$HOME_OF_IT" ]] ||
        fail "it could not be put into $CACHE."
}

if [[ ! -f "$HOME_OF_IT/s3proxy-$VERSION.jar" ]]; then
    mkdir -p "$CACHE" || fail "$CACHE cannot be made."
    ensure_maven
    install_server
fi
printf '%s\n' "$HOME_OF_IT"
