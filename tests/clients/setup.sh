#!/bin/bash
# Installs the clients that the tests in this folder use, through apt-get, Maven, pip, npm and go; what is there already
# stays.
#   tests/clients/setup.sh
# Debian packages go into the system (that part needs root), everything else into target/clients.
# Says in one line what could not be had, and ends with 0 all the same: the tests show what they miss as ignored.
set -uo pipefail
cd "$(dirname "$0")/../.."
place="${CARGO_TARGET_DIR:-target}/clients"
mkdir -p "$place"

say() { echo "setup: $*"; }

debian() { # debian COMMAND PACKAGE...: what gives COMMAND, or FILE when it begins with a slash
  local wanted="$1"; shift
  if [ "${wanted#/}" = "$wanted" ]; then command -v "$wanted" > /dev/null && return 0; else [ -e "$wanted" ] && return 0; fi
  command -v apt-get > /dev/null || { say "no $*: there is no apt-get here"; return 1; }
  [ "$(id -u)" = 0 ] || { say "no $*: installing Debian packages needs root"; return 1; }
  if [ ! -e "$place/.apt-updated" ]; then
    timeout 300 apt-get update -qq > "$place/apt.log" 2>&1 && touch "$place/.apt-updated"
  fi
  DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends "$@" \
    >> "$place/apt.log" 2>&1 < /dev/null || { say "no $*: apt-get failed, see $place/apt.log"; return 1; }
}

omkafka="/usr/lib/$(uname -m)-linux-gnu/rsyslog/omkafka.so"
debian kcat kcat
debian rsyslogd rsyslog
debian "$omkafka" rsyslog-kafka
debian java default-jre-headless
debian mvn maven
debian python3 python3 python3-venv
debian npm npm

jars="$place/kafka-4.3.1"
if [ ! -e "$jars/.done" ] && command -v mvn > /dev/null; then
  timeout 900 mvn -q -B -f tests/clients/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$(realpath "$place")/kafka-4.3.1" > "$place/maven.log" 2>&1 < /dev/null \
    && touch "$jars/.done" || say "no Java tools of Kafka: mvn failed, see $place/maven.log"
fi

venv="$place/python"
if [ ! -e "$venv/.done" ] && command -v python3 > /dev/null; then
  { python3 -m venv "$venv" && timeout 600 "$venv/bin/pip" install -q confluent-kafka==2.16.1 kafka-python==3.0.12; } \
    > "$place/pip.log" 2>&1 < /dev/null \
    && touch "$venv/.done" || say "no Python clients: pip failed, see $place/pip.log"
fi
node="$place/node"
if [ ! -e "$node/.done" ] && command -v npm > /dev/null; then
  mkdir -p "$node"
  timeout 300 npm install --prefix "$node" --no-audit --no-fund kafkajs@2.2.4 > "$place/npm.log" 2>&1 < /dev/null \
    && touch "$node/.done" || say "no KafkaJS: npm failed, see $place/npm.log"
fi

go="$place/franz-go-round-trip"
if [ ! -e "$go" ] && command -v go > /dev/null; then
  timeout 600 go build -C tests/clients/franz-go -o "$(realpath "$place")/franz-go-round-trip" . \
    > "$place/go.log" 2>&1 < /dev/null || say "no franz-go: go build failed, see $place/go.log"
fi
exit 0
