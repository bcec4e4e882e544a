#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that must hold before a change goes in: rules, formats, three builds with their tests, fuzzers.
# One line a step; a step that fails shows its log. The last line is "N passed, N failed", tests and steps together.
#
#   CHECK_FUZZ_SECONDS=60   how long each fuzzer runs
set -uo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

# A compiler cache serves every copy of the tree.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

logs=build/check
cores=$(nproc)
passed=0
failed=0
closing=()

report() {  # report ok|FAIL SECONDS NAME
  printf '%-4s %5d s  %s\n' "$1" "$2" "$3"
}

fail_with_log() {  # fail_with_log SECONDS NAME LOG
  report FAIL "$1" "$2"
  echo "---- $3"
  tail -n 200 "$3"
  echo "----"
}

step() {  # step NAME COMMAND...: one step
  local name=$1 begin=$SECONDS log="$logs/${1//[^a-z0-9]/-}.log"
  shift
  if "$@" >"$log" 2>&1; then
    report ok $((SECONDS - begin)) "$name"
    passed=$((passed + 1))
  else
    fail_with_log $((SECONDS - begin)) "$name" "$log"
    failed=$((failed + 1))
    return 1
  fi
}

tests() {  # tests PRESET: all tests of a build, counted one by one
  local preset=$1 begin=$SECONDS log="$logs/tests-$1.log" status=0 summary all wrong skipped
  ctest --preset "$preset" -j "$cores" >"$log" 2>&1 || status=$?
  summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+$' "$log" | tail -n 1)  # logs may quote others
  all=${summary##* }
  wrong=$(sed -E 's/.*passed, ([0-9]+) .*/\1/' <<<"$summary")
  skipped=$(grep -c -E '^ *[0-9]+/[0-9]+ Test .*\*\*\*Skipped' "$log")
  if [ -z "$all" ] || { [ "$status" -ne 0 ] && [ "$wrong" -eq 0 ]; }; then
    fail_with_log $((SECONDS - begin)) "tests of the $preset build" "$log"
    failed=$((failed + 1))
    return
  fi
  passed=$((passed + all - wrong - skipped))
  failed=$((failed + wrong))
  closing+=("$preset: $summary ($skipped skipped), $(grep '^Total Test time' "$log" | tail -n 1)")
  if [ "$wrong" -eq 0 ]; then
    report ok $((SECONDS - begin)) "tests of the $preset build: $all"
  else
    fail_with_log $((SECONDS - begin)) "tests of the $preset build: $wrong of $all" "$log"
  fi
}

build() {  # build PRESET [TARGET...]
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}
}

build_and_test() {  # build_and_test PRESET [TARGET...]
  step "build $1" build "$@" && tests "$1"
}

thread_test_programs() {  # the test programs whose code runs on several threads
  local layer
  for layer in base kernels linear attention model engine; do
    [ -e "tests/$layer/CMakeLists.txt" ] && echo "${layer}_test"
  done
}

fuzz() {  # every fuzz program of the sanitizer build, as many at once as there are cores
  local program name names=() seconds=${CHECK_FUZZ_SECONDS:-60}
  for program in build/debug/bin/*_fuzz; do
    [ -x "$program" ] || continue
    names+=("$(basename "$program")")
    while [ "$(jobs -rp | wc -l)" -ge "$cores" ]; do wait -n; done
    {
      "$program" --seconds "$seconds" >"$logs/${names[-1]}.log" 2>&1
      echo $? >"$logs/${names[-1]}.status"
    } &
  done
  wait
  for name in "${names[@]}"; do
    step "$name for $seconds s" bash -c 'cat "$1.log"; exit "$(cat "$1.status")"' _ "$logs/$name"
  done
}

mkdir -p "$logs"
scripts/setup.sh check || exit 1

step "layers" scripts/check_layers.py
step "house rules" scripts/check_house_rules.py
step "format" scripts/format.sh --check
if step "build release" build release; then
  for model in minilm multilingual-e5-small smollm2-135m-instruct; do
    step "model $model" build/bin/clearhead fetch "$model"
  done
  tests release
fi
build_and_test debug && fuzz
build_and_test tsan $(thread_test_programs)

echo
printf '%s\n' "${closing[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
