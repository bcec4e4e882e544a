#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches gemma-3-270m, once its terms have been accepted, and compares it with what transformers and llama.cpp say of it.
# The last line is "N passed, N failed", one for each test and each step.
#
#   CHECK_GEMMA_ACCEPT_LICENSE=1   says that the terms of use have been read and accepted; without it they are asked for
#
# Exit code 0: all passed. 1: something failed. 2: the terms have not been accepted.
set -euo pipefail
cd "$(dirname "$0")/.."

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
terms=https://ai.google.dev/gemma/terms
program=build/bin/clearhead
book=$'\xe4\xb9\xa6'  # the word for book, in UTF-8 whatever the locale

accepted() {
  [ "${CHECK_GEMMA_ACCEPT_LICENSE:-}" = 1 ] && return
  if [ -t 0 ]; then
    local answer
    read -r -p "gemma-3-270m comes under the Gemma terms of use: $terms. Do you accept them? (yes/no) " answer
    [ "$answer" = yes ] && return
  fi
  echo "gemma-3-270m comes under the Gemma terms of use, which you have to accept before it is fetched: read" >&2
  echo "$terms and, if you agree, run: CHECK_GEMMA_ACCEPT_LICENSE=1 make check-gemma" >&2
  return 1
}

accepted || exit 2
scripts/setup.sh check
cmake --preset release >/dev/null
cmake --build --preset release --target clearhead gemma_test
"$program" fetch gemma-3-270m --accept-license

passed=0
failed=0
step() {  # step NAME COMMAND...
  local name=$1
  shift
  echo "-- $name"
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=$(build/bin/gemma_test --gtest_list_tests | grep '^  ' | wc -l)
echo "-- gemma_test"
build/bin/gemma_test --gtest_brief=1 | tee "$work/tests" || true
wrong=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\?.*/\1/p' "$work/tests" | tail -n 1)
grep -q '^\[  PASSED  \]' "$work/tests" || wrong=${wrong:-$tests}
passed=$((passed + tests - ${wrong:-0}))
failed=$((failed + ${wrong:-0}))

step "what the book looks at" "$program" attend --model gemma-3-270m --from "$book" \
  $'\xe5\xb0\x8f\xe6\x98\x8e\xe5\x9c\xa8\xe5\x9b\xbe\xe4\xb9\xa6\xe9\xa6\x86\xe5\x80\x9f\xe4\xba\x86\xe4\xb8\x80\xe6\x9c\xac\xe5\x8e\x9a\xe5\x8e\x9a\xe7\x9a\x84\xe4\xb9\xa6\xe3\x80\x82'
step "a text is continued" "$program" generate --model gemma-3-270m --max-tokens 12 "The capital of France is"
step "a record" "$program" record --model gemma-3-270m --stages all --output "$work/trace.safetensors" "The cat sat on the mat"
step "every stage of it recomputed in double" "$program" verify "$work/trace.safetensors"

echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
