#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to real attention: builds the program, fetches a small model and shows who looks at whom.
set -euo pipefail
cd "$(dirname "$0")/.."

sentence="The cat sat on the mat"
program=build/bin/clearhead

say() { printf '\n== %s\n\n' "$1"; }
show() {
  printf '$ clearhead'
  printf ' %q' "$@"
  printf '\n\n'
  "$program" "$@"
}

say "1 of 3: the program"
make --no-print-directory build

say "2 of 3: a small model (minilm, 83 MB, fetched once)"
if ! "$program" fetch minilm; then
  echo "minilm could not be fetched (see above). Here is the lesson on a toy instead, which needs no model." >&2
  show lesson --toy
  exit 1
fi

say "3 of 3: who looks at whom in \"$sentence\""
show attend "$sentence"
say "Who sat? Layer 5 head 11 connects the verb with who acts"
show attend --layer 5 --head 11 "$sentence"
say "Where? Layer 5 head 3 connects it with the place"
show attend --layer 5 --head 3 "$sentence"
