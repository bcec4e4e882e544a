#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment of the peers in a folder, if it is not there as requirements.txt has it. It is large (some
# 6 GB, since PyTorch comes with what it needs for graphics cards), and nothing but this benchmark needs it.
#
#   environment.sh FOLDER
#
# Exit code 0: it is there. 1: it cannot be made from here; what is missing, is said on stderr.
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "$0")"

wanted=$(sed -E '/^[[:space:]]*(#|$)/d' requirements.txt)
[ -e "$folder/made" ] && [ "$(cat "$folder/made")" = "$wanted" ] && exit 0

mkdir -p "$(dirname "$folder")"
log=$folder.log
echo "Installing the peers into $folder:" $wanted
if ! { python3 -m venv "$folder" && "$folder/bin/pip" install --no-compile --disable-pip-version-check -r requirements.txt; } >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  {
    echo "The peers could not be installed (all words in $log). Missing is at least one of:"
    for line in $wanted; do echo "  $line"; done
  } >&2
  exit 1
fi
echo "$wanted" >"$folder/made"
