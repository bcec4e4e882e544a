#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures this machine: the program's own benchmark, each layer's, and how long a person waits for an answer.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
cmake --preset release >/dev/null
cmake --build --preset release
for program in build/bin/*_bench; do
  [ -x "$program" ] || continue
  printf '\n== %s\n\n' "$(basename "$program")"
  "$program"
done
if build/bin/clearhead bench --help >/dev/null 2>&1; then
  printf '\n== clearhead bench\n\n'
  build/bin/clearhead bench
fi
printf '\n== clearhead attend\n\n'
build/bin/clearhead fetch minilm
scripts/bench_attend.py
