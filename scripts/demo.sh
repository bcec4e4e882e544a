#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to real attention: builds the program, fetches two small models and shows who looks at whom in a sentence
# of English and one of Chinese.
set -euo pipefail
cd "$(dirname "$0")/.."

english="The cat sat on the mat"
# "Xiaoming borrowed a thick book in the library", and its word for book, in UTF-8 whatever the locale.
chinese=$'\xe5\xb0\x8f\xe6\x98\x8e\xe5\x9c\xa8\xe5\x9b\xbe\xe4\xb9\xa6\xe9\xa6\x86\xe5\x80\x9f\xe4\xba\x86'
chinese+=$'\xe4\xb8\x80\xe6\x9c\xac\xe5\x8e\x9a\xe5\x8e\x9a\xe7\x9a\x84\xe4\xb9\xa6\xe3\x80\x82'
book=$'\xe4\xb9\xa6'
program=build/bin/clearhead

say() { printf '\n== %s\n\n' "$1"; }
show() {
  local word
  printf '$ clearhead'
  for word in "$@"; do
    case $word in
      *[!a-zA-Z0-9-]*) printf ' "%s"' "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n\n'
  "$program" "$@"
}

say "1 of 4: the program"
make --no-print-directory build

say "2 of 4: two small models, fetched once (minilm, 83 MB; multilingual-e5-small, 91 MB, reads Chinese)"
if ! "$program" fetch minilm; then
  echo "minilm could not be fetched (see above). Here is the lesson on a toy instead, which needs no model." >&2
  show lesson --toy
  exit 1
fi
reads_chinese=yes
"$program" fetch multilingual-e5-small || reads_chinese=no

say "3 of 4: who looks at whom in \"$english\""
show attend "$english"
say "Who sat? Layer 5 head 11 connects the verb with who acts"
show attend --layer 5 --head 11 "$english"
say "Where? Layer 5 head 3 connects it with the place"
show attend --layer 5 --head 3 "$english"

if [ $reads_chinese = no ]; then
  echo "multilingual-e5-small could not be fetched (see above), so the Chinese sentence is left out." >&2
  exit 1
fi
say "4 of 4: the book in \"$chinese\" (Xiaoming borrowed a thick book in the library)"
show attend "$chinese"
say "What is it like, where was it, what was done with it? The heads through which the book finds each word"
show attend --from "$book" "$chinese"
