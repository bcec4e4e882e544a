#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that a purpose needs and that are not there yet, and says which.
#
#   scripts/setup.sh build|check
#
# Exit code 0: all is there. 1: something is missing and cannot be installed from here; what, is said on stderr.
set -euo pipefail
cd "$(dirname "$0")"

lists=(packages-build.txt)
case "${1:-}" in
  build) ;;
  check) lists+=(packages-check.txt) ;;
  *) echo "usage: scripts/setup.sh build|check" >&2; exit 2 ;;
esac

# "PACKAGE WHAT-IT-BRINGS" lines of the lists.
rows() { sed -E '/^[[:space:]]*(#|$)/d' "${lists[@]}"; }

missing_packages() {
  local wanted installed
  wanted=$(rows | awk '{print $1}' | sort)
  # A package of several architectures is named with its own.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u)
  comm -23 <(echo "$wanted") <(echo "$installed")
}

has() {
  case "$1" in
    /*) [ -e "$1" ] ;;
    '<'*) echo "#include $1" | "${CXX:-c++}" -std=c++20 -x c++ -M - >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# Without apt: what cannot be found, by the name that Debian gives its package.
without_apt() {
  local package thing missing=()
  while read -r package thing; do
    has "$thing" || missing+=("  $package ($thing)")
  done < <(rows)
  [ ${#missing[@]} -eq 0 ] && exit 0
  {
    echo "This system has no apt-get. Please install these (named as in Debian 12) and try again:"
    printf '%s\n' "${missing[@]}"
  } >&2
  exit 1
}

command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1 || without_apt

mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    {
      echo "Some packages are missing, and only root can install them. Please run:"
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    } >&2
    exit 1
  fi
fi

echo "Installing with apt-get: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >>"$log" 2>&1 </dev/null; }
if ! apt update || ! apt install -y --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "apt-get could not install these packages (its last words are above): ${missing[*]}" >&2
  exit 1
fi
