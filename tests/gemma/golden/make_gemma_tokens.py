#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/gemma/data/gemma_tokens.json: the ids that llama.cpp gives each text of tests/text with the tokenizer of
the GGUF of gemma-3-270m.

    python make_gemma_tokens.py PATH_OF_THE_GGUF

Needs llama-cpp-python (made with 0.3.36).
"""
import json
import pathlib
import sys

import llama_cpp

TESTS = pathlib.Path(__file__).resolve().parents[2]


def main():
    model = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
    texts = [row[0] for row in json.loads((TESTS / "text/data/bert_golden.json").read_text("utf-8"))]
    rows = [json.dumps(model.tokenize(text.encode(), add_bos=True, special=True), separators=(",", ":")) for text in texts]
    out = TESTS / "gemma/data/gemma_tokens.json"
    out.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")
    print(f"{len(rows)} texts, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
