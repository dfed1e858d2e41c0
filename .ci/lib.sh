# Sourced by .ci/run and .ci/full, from the root of the project: steps, suites and their counts.

shared="$(cd ../shared 2> /dev/null && pwd)"
target="$PWD/${CARGO_TARGET_DIR:-target}"
case "${CARGO_TARGET_DIR:-}" in /*) target="$CARGO_TARGET_DIR" ;; esac
logs="$target/ci"
rm -rf "$logs"; mkdir -p "$logs"
export ONRUSH_BIN="$target/release/onrush" CARGO_TERM_COLOR=never RUST_BACKTRACE=0
export COMPAT_CACHE="${COMPAT_CACHE:-$HOME/.cache/compat}"

passed=0 failed=0 known=0
broker=""

say() { printf '%s\n' "$*"; }

# Ends the broker of this run, when one is left, and counts.
finish() {
  [ -n "$broker" ] && "$shared/cases/broker-onrush" kill "$broker"
  say "known failures: $known (each with its reason in .ci/expected)"
  say "$passed passed, $failed failed"
  exit $((failed > 0))
}

# within NAME SECONDS COMMAND...: runs it, with its output in a file and its time bounded; says how it went.
within() {
  local name="$1" seconds="$2" begun=$SECONDS status; shift 2
  timeout -k 20 "$seconds" "$@" > "$logs/$name.log" 2>&1 < /dev/null
  status=$?
  took=$((SECONDS - begun))
  [ "$status" -ne 124 ] || say "   $name ran longer than $seconds s and was ended"
  return "$status"
}

# step NAME SECONDS COMMAND...: one thing that must succeed.
step() {
  local name="$1"
  if within "$@"; then
    say "== $name: ok, $took s"
    passed=$((passed + 1))
    return 0
  fi
  say "== $name: FAILED after $took s; the end of $logs/$name.log:"
  tail -n 60 "$logs/$name.log"
  failed=$((failed + 1))
  return 1
}

# tests NAME SECONDS COMMAND...: one that runs tests of cargo; each counts.
tests() {
  local name="$1" status p f i
  within "$@"; status=$?
  read -r p f i <<< "$(awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$logs/$name.log")"
  passed=$((passed + p)) failed=$((failed + f))
  if [ "$status" -ne 0 ]; then
    [ "$f" -gt 0 ] || failed=$((failed + 1))
    say "== $name: FAILED after $took s: $p passed, $f failed; from $logs/$name.log:"
    grep -E '^(error|test .*FAILED|---- |thread |assertion| +(left|right):)' "$logs/$name.log" | head -n 40
    tail -n 40 "$logs/$name.log"
    return 1
  fi
  say "== $name: ok, $took s: $p passed, $i ignored"
  grep -hoE 'not run: .*' "$logs/$name.log" | sed 's/^/   /'
  return 0
}

# alive PID: a process that has ended and that nobody waited for does not count.
alive() { case "$(ps -o stat= -p "$1")" in "" | Z*) return 1 ;; esac; }

# A port that nothing listens at now, and none of the range from which clients get theirs.
free_port() {
  python3 - <<'PY'
import socket
for port in range(19092, 19992, 10):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(port)
        break
PY
}

# What the suites ask of a broker beyond the defaults; group.initial.rebalance.delay.ms only makes them quicker.
suite_settings=(
  num.partitions=4 group.min.session.timeout.ms=100 group.initial.rebalance.delay.ms=0 offsets.topic.num.partitions=5
  log.cleaner.backoff.ms=500
)
# Only for suites that wait for old records to go: others write records of past years and want to read them back.
quick_retention=(log.retention.check.interval.ms=1000 log.initial.task.delay.ms=500)

# suite NAME SECONDS COMMAND... [-- KEY=VALUE...]: runs COMMAND with the address of a fresh broker behind it, and
# compares the outcome with .ci/expected/NAME.txt; without that file the outcome is only told.
suite() {
  local name="$1" seconds="$2" command=() settings=() p c k port; shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do command+=("$1"); shift; done
  [ $# -eq 0 ] || { shift; settings=("$@"); }
  port="$(free_port)"
  broker="$logs/broker-$name"
  if ! "$shared/cases/broker-onrush" start "$port" "$broker" "${suite_settings[@]}" \
    "${settings[@]/BOOTSTRAP/127.0.0.1:$port}" < /dev/null; then
    say "== $name: FAILED, the broker did not start"; failed=$((failed + 1)); broker=""
    return 1
  fi
  export CASE_BROKER_PID; CASE_BROKER_PID="$(cat "$broker/pid")"
  within "$name" "$seconds" "${command[@]/BOOTSTRAP/127.0.0.1:$port}"
  if ! alive "$CASE_BROKER_PID"; then
    say "   UNEXPECTED  the broker ended in the middle of $name; its last words:"
    tail -n 30 "$broker/broker.log"; failed=$((failed + 1))
  elif ! "$shared/cases/broker-onrush" stop "$broker"; then
    say "   UNEXPECTED  the broker did not stop in order after $name"; failed=$((failed + 1))
    "$shared/cases/broker-onrush" kill "$broker"
  fi
  rm -rf "$broker/data"; broker=""
  if [ ! -e ".ci/expected/$name.txt" ]; then
    say "== $name: $took s, not judged: $(grep -E '^[a-z-]+: [0-9]+ passed' "$logs/$name.log" | tail -n 1)"
    return 0
  fi
  python3 .ci/compare.py ".ci/expected/$name.txt" "$logs/$name.log" "$logs/$name.result"
  read -r p c k < "$logs/$name.result"
  passed=$((passed + p)) failed=$((failed + c)) known=$((known + k))
  if [ "$c" -gt 0 ]; then
    say "== $name: FAILED after $took s: $p passed, $c unexpected; the end of $logs/$name.log:"
    tail -n 25 "$logs/$name.log" | cut -c 1-400
  else
    say "== $name: ok, $took s: $p passed, $k known failures"
  fi
}
