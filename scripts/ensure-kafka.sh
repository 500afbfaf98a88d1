#!/usr/bin/env bash
# Prints the folder of the Kafka broker that tests start on loopback; installs it where it is missing.
#
# The broker is Apache Kafka (Apache-2.0) in KRaft mode, one process without ZooKeeper. It runs on the Java of Spark:
#     java -cp "$(scripts/ensure-kafka.sh)/lib/*" kafka.Kafka FILE
# `formatted/` has an empty log folder, as `kafka.tools.StorageTool format` makes it: tests copy it, which takes no
# second JVM. The jars come through Maven, as that is configured on this machine, and stay in the user's cache.
# Only the folder goes to stdout; everything a person should read goes to stderr.
set -euo pipefail

readonly VERSION=4.2.0
# The broker logs through slf4j; without this it would log nowhere.
readonly SLF4J=1.7.36
readonly CACHE="${ANABRANCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/anabranch}"
readonly HOME_OF_IT="$CACHE/kafka-$VERSION"
readonly WHAT="the Kafka broker for tests" IT="Apache Kafka $VERSION"
cd "$(dirname "${BASH_SOURCE[0]}")"

# shellcheck source=scripts/with-maven.sh
source ./with-maven.sh

install_broker() {
    local building java
    building="$(mktemp -d "$CACHE/.kafka.XXXXXX")"
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$building'" EXIT
    cat >"$building/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch</groupId>
  <artifactId>kafka-broker-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>$SLF4J</version>
    </dependency>
  </dependencies>
</project>
POM
    say "Installing the Kafka broker for tests (Apache Kafka $VERSION, 45 MB) into $HOME_OF_IT."
    mvn -q -B -f "$building/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$building/home/lib" -DincludeScope=runtime >&2 || fail "Maven failed (see above)."
    java="${JAVA_HOME:-$(./ensure-java.sh)}/bin/java"
    cat >"$building/format.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs=$building/home/formatted
PROPERTIES
    "$java" -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$building/home/lib/*" kafka.tools.StorageTool \
        format --cluster-id AnabranchTestsAAAAAAAA --config "$building/format.properties" >&2 ||
        fail "its log folder could not be formatted (see above)."
    # Two that install at once make the same; whoever comes second keeps what is there.
    mv -T "$building/home" "$HOME_OF_IT" 2>/dev/null || [[ -d "$HOME_OF_IT" ]] ||
        fail "it could not be put into $CACHE."
}

if [[ ! -f "$HOME_OF_IT/formatted/meta.properties" ]]; then
    mkdir -p "$CACHE" || fail "$CACHE cannot be made."
    ensure_maven
    install_broker
fi
printf '%s\n' "$HOME_OF_IT"
