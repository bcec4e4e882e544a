# SPDX-License-Identifier: Apache-2.0
"""Tokenizers beside the libraries tokenizers and tiktoken: the same texts, one thread each, equal ids before the clock
starts."""
import json
import os
import pathlib

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the library is loaded
import tiktoken
import tokenizers

import texts
from turns import take_turns, worker

version = f"tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}"
MODELS = {"WordPiece": "minilm", "BPE": "smollm2-135m-instruct", "Unigram": "multilingual-e5-small"}
BYTES, QUICK_BYTES = 3_000_000, 100_000
# How smollm2 cuts words, as one expression: digits alone, and white space before a digit as at the end of a text.
PATTERN = (r"'s|'t|'re|'ve|'m|'ll|'d|\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+")


def byte_characters():
    """character -> byte of byte-level pieces."""
    kept = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    table = {chr(byte): byte for byte in kept}
    shifted = [byte for byte in range(256) if byte not in kept]
    return {**table, **{chr(256 + i): byte for i, byte in enumerate(shifted)}}


def tiktoken_encoding(definition):
    """The same byte pairs for tiktoken, whose ranks are the ids; None if they are in another order."""
    byte_of = byte_characters()
    vocabulary, merges = definition["model"]["vocab"], definition["model"]["merges"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    made = [vocabulary[left + right] for left, right in pairs]
    if made != sorted(made):
        return None
    written = {token: rank for token, rank in vocabulary.items() if all(c in byte_of for c in token)}
    special = {token["content"] for token in definition["added_tokens"]}
    ranks = {bytes(byte_of[c] for c in token): rank for token, rank in written.items() if token not in special}
    return tiktoken.Encoding("peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def library(path):
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def same(what, ours, theirs):
    wrong = [i for i, (own, other) in enumerate(zip(ours, theirs, strict=True)) if own != list(other)]
    if wrong:
        raise SystemExit(f"{what}: the ids of {len(wrong)} texts differ from clearhead's, the first is text {wrong[0]}")


def row(ours, folder, kind, language, some_texts, effort):
    paths = {name: folder / f"{name}.json" for name in ("texts", "outputs", "tokenizer")}
    paths["texts"].write_text(json.dumps(some_texts), encoding="utf-8")
    ours.ask(prepare="tokenizer", model=MODELS[kind], **{name: str(path) for name, path in paths.items()})
    ids = json.loads(paths["outputs"].read_text(encoding="utf-8"))
    tokenizer = library(paths["tokenizer"])
    same(f"tokenizers, {kind}", ids, [e.ids for e in tokenizer.encode_batch_fast(some_texts, add_special_tokens=False)])
    workers = {"clearhead ids": lambda turn: ours.turn("ids", turn), "clearhead tokens": lambda turn: ours.turn("tokens", turn),
               "tokenizers fast": worker(lambda: tokenizer.encode_batch_fast(some_texts, add_special_tokens=False)),
               "tokenizers": worker(lambda: tokenizer.encode_batch(some_texts, add_special_tokens=False))}
    definition = json.loads(paths["tokenizer"].read_text(encoding="utf-8"))
    encoding = tiktoken_encoding(definition) if kind == "BPE" else None
    if encoding:
        same("tiktoken", ids, encoding.encode_ordinary_batch(some_texts, num_threads=1))
        workers["tiktoken"] = worker(lambda: encoding.encode_ordinary_batch(some_texts, num_threads=1))
    return {"kind": kind, "model": MODELS[kind], "language": language, "tokens": sum(map(len, ids)),
            "bytes": sum(len(text.encode()) for text in some_texts), "results": take_turns(workers, effort)}


def pieces_of(ours, folder, kind):
    """The vocabulary by id."""
    files = {name: str(folder / f"{name}.json") for name in ("texts", "outputs", "tokenizer")}
    pathlib.Path(files["texts"]).write_text("[]", encoding="utf-8")
    ours.ask(prepare="tokenizer", model=MODELS[kind], **files)
    tokenizer = library(files["tokenizer"])
    return [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]


def rows(ours, effort, quick, say):
    folder = pathlib.Path(ours.folder.name)
    pieces = [pieces_of(ours, folder, kind) for kind in ("WordPiece", "Unigram")]  # English, Chinese
    result = []
    for language, some_texts in texts.texts(*pieces, QUICK_BYTES if quick else BYTES).items():
        for kind in MODELS:
            result.append(row(ours, folder, kind, language, some_texts, effort))
            say(f"  tokenizer {kind}, {language}: " + ", ".join(
                f"{name} {result[-1]['bytes'] / 1e6 / seconds['median']:.1f} MB/s"
                for name, seconds in result[-1]["results"].items()))
    return result


def main():
    """Only this part, printed: peer_tokenizers.py [--quick]"""
    import sys
    from ours import Clearhead
    from turns import QUICK, Effort
    quick = "--quick" in sys.argv
    ours = Clearhead(1)
    rows(ours, QUICK if quick else Effort(), quick, print)
    ours.close()


if __name__ == "__main__":
    main()
