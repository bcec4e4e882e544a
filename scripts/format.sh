#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ file under version control, or with --check names those that are not formatted (exit code 1).
set -euo pipefail
cd "$(dirname "$0")/.."

action=(-i)
[ "${1:-}" = --check ] && action=(--dry-run -Werror)
git ls-files -z -- '*.h' '*.cc' | xargs -0 -r clang-format-16 "${action[@]}"
