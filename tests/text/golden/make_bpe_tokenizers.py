#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two small BPE tokenizers of the tests on the sentences that make_golden.py reads:

  make_bpe_tokenizers.py --packages FOLDER

  ../data/byte_bpe.json       of GPT-2's kind: each byte a character, GPT-2's words, each digit by itself
  ../data/fallback_bpe.json   of Llama 2's kind: spaces as U+2581, no words, unknown characters as bytes

Made with tokenizers 0.23.3; make_golden.py --name byte_bpe and --name fallback_bpe make what the tests compare with.
"""
import argparse
import json

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_golden import DATA, sentences

PIECES = 1200


def byte_bpe(lines):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=PIECES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def fallback_bpe(lines):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=PIECES + 256, special_tokens=["<unk>", "<s>", "</s>", *bytes_],
                                  limit_alphabet=300, show_progress=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.pre_tokenizer = None
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = [token for token in made["added_tokens"] if token["content"] not in bytes_]
    return Tokenizer.from_str(json.dumps(made))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    lines = sentences(parser.parse_args().packages)
    for name, make in (("byte_bpe", byte_bpe), ("fallback_bpe", fallback_bpe)):
        text = json.dumps(json.loads(make(lines).to_str()), ensure_ascii=False, separators=(",", ":"))
        (DATA / f"{name}.json").write_text(text + "\n", "utf-8")
        print(f"{name}.json: {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
