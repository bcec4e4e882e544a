#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ file under version control, or with --check names those that are not formatted (exit code 1).
set -euo pipefail
cd "$(dirname "$0")/.."

action=(-i)
[ "${1:-}" = --check ] && action=(--dry-run -Werror)

files() {  # without version control: all that are not built
  git ls-files -z -- '*.h' '*.cc' 2>/dev/null ||
    find . -path ./build -prune -o \( -name '*.h' -o -name '*.cc' \) -type f -print0
}
files | xargs -0 -r clang-format-16 "${action[@]}"
