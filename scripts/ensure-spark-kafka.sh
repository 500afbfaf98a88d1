#!/usr/bin/env bash
# Prints the folder with the jars of Spark's own Kafka source, which `anabranch bench kafka` runs beside ours;
# installs them where they are missing.
#
# PySpark does not bring them. Not every release is in Maven's repository with all its parts: these versions are, and
# together they run on the Spark of constraints.txt. Their own dependencies are left out, for PySpark has those.
# Only the folder goes to stdout; everything a person should read goes to stderr.
set -euo pipefail

readonly SOURCE=4.2.0 PARTS=4.0.0 CLIENTS=3.9.2 POOL=2.12.0
readonly CACHE="${ANABRANCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/anabranch}"
readonly HOME_OF_IT="$CACHE/spark-kafka-$SOURCE"

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: Spark's Kafka source could not be installed: $1"
    say "Its jars come from Maven's repository. Install Maven (on Debian: apt-get install maven) and run this again."
    exit 1
}

dependency() {
    cat <<POM
    <dependency>
      <groupId>$1</groupId>
      <artifactId>$2</artifactId>
      <version>$3</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
POM
}

install_jars() {
    local building
    building="$(mktemp -d "$CACHE/.spark-kafka.XXXXXX")"
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$building'" EXIT
    cat >"$building/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch</groupId>
  <artifactId>spark-kafka-for-benchmarks</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
$(dependency org.apache.spark spark-sql-kafka-0-10_2.13 "$SOURCE")
$(dependency org.apache.spark spark-token-provider-kafka-0-10_2.13 "$PARTS")
$(dependency org.apache.spark spark-avro_2.13 "$PARTS")
$(dependency org.apache.kafka kafka-clients "$CLIENTS")
$(dependency org.apache.commons commons-pool2 "$POOL")
  </dependencies>
</project>
POM
    say "Installing Spark's Kafka source for benchmarks (10 MB) into $HOME_OF_IT."
    mvn -q -B -f "$building/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$building/home" -DincludeScope=runtime >&2 || fail "Maven failed (see above)."
    # Two that install at once make the same; whoever comes second keeps what is there.
    mv -T "$building/home" "$HOME_OF_IT" 2>/dev/null || [[ -d "$HOME_OF_IT" ]] ||
        fail "it could not be put into $CACHE."
}

if [[ ! -d "$HOME_OF_IT" ]]; then
    command -v mvn >/dev/null || fail "there is no mvn."
    mkdir -p "$CACHE" || fail "$CACHE cannot be made."
    install_jars
fi
printf '%s\n' "$HOME_OF_IT"
