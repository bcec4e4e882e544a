#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes tests/engine/data/trace/gemma2.safetensors anew, and its digest: a trace of every stage of a small model of
# random parameters with grouped heads, alternating windows, rotary positions, a soft cap and a causal rule.
#
#     sh tests/engine/golden/make_trace.sh build/bin/clearhead
#
# The one that is committed was made on a machine with AVX-512; what machines with fused multiply-add record must be
# the same bytes. Only the program's version, which stands in the metadata, may differ.
set -eu
program=$(realpath "$1")
tests=$(realpath "$(dirname "$0")/../..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/golden-gemma2"
cp "$tests"/model/data/decoders/gemma2/* "$tests/engine/data/trace/tokenizer.json" "$folder/golden-gemma2/"
cd "$folder"
"$program" record "The girl borrowed a thick book from the library." --model golden-gemma2 --stages all \
  --output gemma2.safetensors
sha256sum gemma2.safetensors >SHA256SUMS
mv gemma2.safetensors SHA256SUMS "$tests/engine/data/trace/"
