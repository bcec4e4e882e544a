#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures this machine and writes docs/performance.md: the program's own benchmark, its peers beside it in turns, and how
# long a person waits for an answer. What belongs to one layer only is measured by build/bin/*_bench.
#
#   scripts/bench.sh [--quick]   --quick: whether it works, not how fast; writes to build/bench alone
#   CLEARHEAD_PEERS=FOLDER       where the Python environment of the peers is or will be (default: build/peers)
set -euo pipefail
cd "$(dirname "$0")/.."

quick=()
[ "${1:-}" = --quick ] && quick=(--quick)
folder=build/bench
results=$folder/results.json
peers=${CLEARHEAD_PEERS:-build/peers}

scripts/setup.sh build
cmake --preset release >/dev/null
cmake --build --preset program
build/bin/clearhead fetch minilm
build/bin/clearhead fetch multilingual-e5-small
build/bin/clearhead fetch smollm2-135m-instruct
mkdir -p "$folder"

printf '\n== clearhead attend\n\n'
scripts/bench_attend.py
printf '\n== clearhead bench\n\n'
build/bin/clearhead bench "${quick[@]}" --model minilm --output "$folder/clearhead.json"

printf '\n== beside its peers\n\n'
bench/peers/environment.sh "$peers"
"$peers/bin/python" bench/peers/measure.py "${quick[@]}" "$folder/clearhead.json" "$results"
if [ ${#quick[@]} -eq 0 ]; then
  "$peers/bin/python" bench/peers/report.py "$results"
fi
