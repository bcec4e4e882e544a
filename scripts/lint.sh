#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over our own sources (tests are left to the compilers), with the commands of the sanitizer build.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset debug >/dev/null
status=0
run-clang-tidy-16 -quiet -p build/debug -j "$(nproc)" "$PWD/clearhead/.*\.cc$" >build/lint.log 2>&1 || status=$?
grep -E '(warning|error):' -A 3 build/lint.log | sort -u >&2 || true
exit "$status"
