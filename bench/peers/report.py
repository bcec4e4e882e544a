#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md and its pictures from measured results, one section for each kind of machine.

    report.py [RESULTS.json]    a new result, kept in bench/results/ in place of the last one of its kind
"""
import json
import math
import pathlib
import re
import shutil
import sys

import goals
import plot
from shape import shape_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS, DOCS = ROOT / "bench/results", ROOT / "docs"
PEERS = ["PyTorch SDPA", "ONNX Runtime", "OpenVINO"]
INTRODUCTION = """# Performance

What Clearhead needs on machines that it was measured on, beside others that compute the same. `make bench` measures the
machine that it runs on and writes this page anew: `clearhead bench --json`, then `bench/peers/measure.py`, then
`bench/peers/report.py`. Nothing here is typed by hand, except the notes on limits, which stand in `bench/results/`.

- Everybody takes turns: in each round each works once, on the same inputs (normal random numbers) and with the same number
  of threads, so that what slows the machine down slows all. Times are the middle of the rounds.
- Answers are compared before the clock starts: ours with the exact path, bit for bit, the others' with ours.
- The peak is that of fused multiply-add between registers in the same rounds. The limit is the share of it that remains
  when products and exponentials run at their own peaks one after the other.
- Shapes are batch x heads / kv heads, length, head size. Operations are 4 N N d for each head, half of it if causal.
- Statistics of rows are log-sum-exp, entropy, strongest weight and key, mean distance and the mass on three single keys;
  all statistics are these, the eight strongest keys, groups of many keys and a map of 64 x 64 cells. What
  each key receives takes a second sweep.
"""


def kind_of(machine):
    """Machines of a kind are compared with their own past only."""
    return f"{machine['features']}, {machine['cpu']}"


def slug(kind):
    return "_".join(re.findall(r"[a-z0-9-]+", kind.lower()))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def percent(value):
    return f"{100 * value:.0f} %"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


class Section:
    """One kind of machine."""

    def __init__(self, results, notes=""):
        self.notes = notes  # what limits the numbers that are not reached
        self.results, self.bench = results, results["bench"]
        self.features, self.kind = self.bench["machine"]["features"], kind_of(self.bench["machine"])
        self.threads = results["threads"]
        self.goals = []  # (what, least, medal, reached, verdict)

    def row(self, name, shape, threads, evidence=None, precision="f32"):
        for row in self.bench["rows"]:
            if (row["name"], row["shape"], row["threads"], row["evidence"], row["precision"]) == (
                    name, shape, threads, evidence, precision):
                return row
        return None

    def shapes(self, name):
        return list(dict.fromkeys(row["shape"] for row in self.bench["rows"] if row["name"] == name))

    def judge(self, what, reached, bounds, words, less=False):
        least, medal = bounds
        better = (lambda a, b: a <= b) if less else (lambda a, b: a >= b)
        verdict = "medal" if better(reached, medal) else "reached" if better(reached, least) else "**missed**"
        self.goals.append((what, words(least), words(medal), words(reached), verdict))
        return verdict

    def machine(self):
        machine = self.bench["machine"]
        lines = [f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 1e9:.1f} GB; kernels run on "
                 f"{machine['target']}; clearhead {machine['version']} by {machine['compiler']}; "
                 f"{', '.join(self.results['versions'])}. Measured on {self.results['date']}, while other work kept "
                 f"{self.results['busy']:.1f} processors busy.\n"]
        threads = [peak["threads"] for peak in self.bench["peaks"]]
        head = ["peak, 10^9 operations/s"] + [f"{count} thread{'s' * (count > 1)}" for count in threads]
        rows = [["fused multiply-add, F32"] + [f"{peak['multiply_add_gflops']:.0f}" for peak in self.bench["peaks"]]]
        if self.bench["peaks"][0]["bf16_gflops"]:
            rows.append(["multiply-add, BF16"] + [f"{peak['bf16_gflops']:.0f}" for peak in self.bench["peaks"]])
        rows.append(["exp2, F32"] + [f"{peak['exp2_giga']:.1f}" for peak in self.bench["peaks"]])
        return "\n".join(lines) + "\n" + table(head, rows)

    def attention(self):
        wanted, rows = goals.share_goals(self.features), []
        for shape in self.shapes("attention"):
            one, most = (self.row("attention", shape, threads, "none") for threads in (1, self.threads))
            faster = one["seconds"] / most["seconds"]
            share = most["share"]
            bounds = wanted.get(shape)
            verdict = self.judge(f"{shape}, share of peak", 100 * share, bounds, lambda x: f"{x:.0f} %") if bounds else ""
            if self.threads == 2 and one["seconds"] > 5e-3:
                self.judge(f"{shape}, 1 thread to 2", faster, goals.THREADS, lambda x: f"{x:.2f}")
            rows.append([shape, f"{one['gflops']:.0f} ({percent(one['share'])})", f"{most['gflops']:.0f} ({percent(share)})",
                         percent(most["limit"]), f"{bounds[0]} / {bounds[1]} %" if bounds else "", verdict, f"{faster:.2f}"])
        return table(["shape", "1 thread, GFLOP/s", f"{self.threads} threads, GFLOP/s", "limit", "must / medal", "",
                      "1 thread to " + str(self.threads)], rows)

    def bf16(self):
        rows = []
        peers = {row["shape"]: row["results"] for row in self.results.get("attention_bf16", [])}
        for shape in self.shapes("attention"):
            row = self.row("attention", shape, self.threads, "none", "bf16")
            if row is None:
                continue
            if min(shape_of(shape).query_len, shape_of(shape).key_len) >= goals.LONG:
                self.judge(f"{shape}, share of the peak of BF16", 100 * row["share"], goals.BF16, lambda x: f"{x:.0f} %")
            both = peers.get(shape)
            rows.append([shape, f"{row['gflops']:.0f} ({percent(row['share'])})",
                         f"{both['PyTorch SDPA']['median'] / both['clearhead']['median']:.2f}" if both else ""])
        if not rows:
            return ""
        return "\n### Core attention in BF16\n\n" + table(
            ["shape", f"{self.threads} threads, GFLOP/s", "times as fast as PyTorch SDPA in BF16"], rows)

    def statistics(self):
        rows = []
        for shape in self.shapes("attention"):
            plain, some, everything = (self.row("attention", shape, self.threads, evidence) for evidence in
                                       ("none", "rows", "all"))
            received = self.row("attention", shape, self.threads, "received")
            more = [100 * (row["seconds"] / plain["seconds"] - 1) for row in (some, everything, received)]
            sizes = shape_of(shape)
            if min(sizes.query_len, sizes.key_len) >= goals.LONG:
                for what, value, bounds in (("rows", more[0], goals.ROWS), ("all", more[1], goals.ALL)):
                    self.judge(f"{shape}, statistics: {what}", value, bounds, lambda x: f"{x:+.1f} %", less=True)
            rows.append([shape] + [f"{value:+.1f} %" for value in more])
        return table(["shape", "statistics of rows", "all statistics", "received, a second sweep"], rows)

    def contest(self, name, bounds, mean_bounds, per_row):
        rows, factors = [], []
        for row in self.results[name]:
            ours = row["results"]["clearhead"]["median"]
            times = {peer: row["results"][peer]["median"] for peer in PEERS + ["PyTorch eager"] if peer in row["results"]}
            factor = min(times.values() if name == "encoder" else
                         [seconds for peer, seconds in times.items() if peer != "PyTorch eager"]) / ours
            factors.append(factor)
            verdict = self.judge(f"{name} {row['shape']}, against the fastest peer", factor, bounds, lambda x: f"{x:.2f}")
            if name == "attention" and row["shape"] == goals.EAGER_SHAPE and "PyTorch eager" in times:
                self.judge("against PyTorch eager with weights kept, causal 2048", times["PyTorch eager"] / ours, goals.EAGER,
                           lambda x: f"{x:.1f}")
            rows.append([row["shape"], per_row(row, ours)] + [per_row(row, times[peer]) if peer in times else "-"
                                                              for peer in PEERS + ["PyTorch eager"]] +
                        [f"{factor:.2f}", verdict])
        if mean_bounds:
            self.judge(f"{name}, geometric mean against the fastest peer", mean(factors), mean_bounds, lambda x: f"{x:.2f}")
        rows.append(["geometric mean", "", "", "", "", "", f"{mean(factors):.2f}", ""])
        return table(["shape", "Clearhead"] + PEERS + ["PyTorch eager", "times the fastest", ""], rows)

    def memory(self):
        rows = []
        for row in self.bench["rows"]:
            if row["name"] != "attention memory" or row["working_bytes"] is None:
                continue
            megabytes = row["working_bytes"] / 1e6
            if row["evidence"] == "all":
                self.judge(f"{row['shape']}, working memory with all statistics", megabytes, goals.MEMORY,
                           lambda x: f"{x:.1f} MB", less=True)
            rows.append([row["shape"], row["evidence"], f"{megabytes:.1f} MB"])
        return table(["shape", "statistics", "at the height of a run, beyond inputs, outputs and statistics"], rows)

    def encoder(self):
        rows = []
        for shape in self.shapes("encoder"):
            one, most = (self.row("encoder", shape, threads) for threads in (1, self.threads))
            rows.append([shape, f"{one['tokens_per_second']:.0f}", f"{most['tokens_per_second']:.0f}", percent(most["share"]),
                         f"{one['seconds'] / most['seconds']:.2f}"])
        return table(["batch x length", "1 thread, tokens/s", f"{self.threads} threads, tokens/s", "share of peak",
                      f"1 thread to {self.threads}"], rows)

    def tokenizer(self):
        rows = [["ids alone" if row["shape"] == "ids" else "tokens with offsets", f"{row['megabytes_per_second']:.0f} MB/s"]
                for row in self.bench["rows"] if row["name"] == "tokenizer"]
        return table(["WordPiece of minilm, 1 thread", "text"], rows) + self.tokenizers()

    def tokenizers(self):
        """Beside the libraries, on one thread; the faster of the library's two ways counts."""
        rows = []
        for row in self.results.get("tokenizers", []):
            times = {name: result["median"] for name, result in row["results"].items()}
            factor = min(times["tokenizers fast"], times["tokenizers"]) / times["clearhead ids"]
            verdict = self.judge(f"{row['kind']}, {row['language']}, against tokenizers", factor,
                                 goals.TOKENIZER[row["kind"]], lambda x: f"{x:.1f}")
            names = ["clearhead ids", "clearhead tokens", "tokenizers fast", "tokenizers", "tiktoken"]
            rows.append([f"{row['kind']}, {row['language']}"] +
                        [f"{row['bytes'] / 1e6 / times[name]:.1f}" if name in times else "-" for name in names] +
                        [f"{factor:.1f}", f"{times['tokenizers'] / times['clearhead tokens']:.1f}", verdict])
        if not rows:
            return ""
        return "\n" + table(["MB/s, 1 thread", "Clearhead, ids", "with offsets", "tokenizers, ids", "with offsets",
                             "tiktoken, ids", "times tokenizers, ids", "with offsets", ""], rows) + (
            "\nMade-up texts of frequent and rare words (`bench/peers/texts.py`); the ids of all are equal. WordPiece of "
            "minilm, BPE of smollm2, Unigram of multilingual-e5-small.\n")

    def decoder(self):
        """Beside llama.cpp; nothing in results of a time before there were decoders."""
        found = self.results.get("decoder")
        if found is None:
            return ""
        name, rows = goals.machine_class(self.features), []
        for row in found["rows"]:
            what, times = row["shape"].split()[0], {who: result["median"] for who, result in row["results"].items()}
            factor, label = times["llama.cpp"] / times["clearhead"], f"smollm2 {row['stored']} {row['shape']}"
            bounds = goals.LLAMA_BF16[what] if row["stored"] == "BF16" else goals.LLAMA.get(name, goals.LLAMA["AVX2"])[what]
            verdict = self.judge(f"{label}, against llama.cpp", factor, bounds, lambda x: f"{x:.2f}")
            rate = {who: f"{row['tokens'] / seconds:.0f}" for who, seconds in times.items()}
            if "clearhead bf16" in times and row["stored"] == "BF16":
                self.judge(f"{label}, activations in BF16", times["llama.cpp"] / times["clearhead bf16"],
                           goals.LLAMA_ROUNDED, lambda x: f"{x:.2f}")
            if "clearhead looks" in times:
                more = 100 * (times["clearhead looks"] / times["clearhead"] - 1)
                self.judge(f"{label}, looking on", more, goals.LOOKS, lambda x: f"{x:+.1f} %", less=True)
                rate["clearhead looks"] += f" ({more:+.1f} %)"
            rows.append([row["stored"], row["shape"]] + [rate.get(who, "-") for who in (
                "clearhead", "clearhead bf16", "clearhead looks", "llama.cpp")] +
                        [f"{factor:.2f}", verdict, f"{100 * row['difference']:.1f} %"])
        first = found["first_token_seconds"]
        self.judge("start to first token", first, goals.FIRST_TOKEN, lambda x: f"{x:.2f} s", less=True)
        memory = {cache: size / 1e6 for cache, size in found["memory_over_file"].items()}
        for cache, megabytes in memory.items():
            self.judge(f"memory over the file, 2048 tokens, cache in {cache}", megabytes, goals.RESIDENT[cache],
                       lambda x: f"{x:.0f} MB", less=True)
        head = ["file", "shape", "Clearhead", "products in BF16", "looking on", "llama.cpp", "times llama.cpp", "", "apart"]
        return ("\n### Decoders (SmolLM2-135M-Instruct), tokens/s\n\n" + table(head, rows) +
                "\nApart: how far the logits of llama.cpp are from ours, root mean square, in standard deviations of the "
                "logits; it multiplies parameters of few bits with activations of 8 bits, we with floats. From the start of "
                f"the program to its first token, with the file in memory: {first:.2f} s. Resident memory over the size of "
                f"the file, 2048 tokens read: {memory['float']:.0f} MB, with the cache in BF16 {memory['bf16']:.0f} MB.\n")

    def picture(self):
        """Name and content of the picture that the section shows."""
        title = f"Causal attention, 9 heads over 3 of 64, {self.threads} threads: {self.kind}"
        return f"pictures/cost_{slug(self.kind)}.svg", plot.growth_picture(self.results["growth"], title)

    def growth(self):
        return f"![How the cost grows]({self.picture()[0]})\n"

    def missed(self):
        missed = [goal for goal in self.goals if goal[4] == "**missed**"]
        if not missed:
            return ""
        rows = [(goal[0], goal[1], goal[3]) for goal in missed]
        text = "\n### What is not reached\n\n" + table(["what", "must", "reached"], rows)
        return text + self.profiles({goal[0].split(",")[0] for goal in missed}) + ("\n" + self.notes if self.notes else "")

    def profiles(self, shapes):
        """Where the time of plain runs goes, for shapes that missed something."""
        found = [row for row in self.results["attention"] if row["shape"] in shapes and row["profile"]]
        if not found:
            return ""
        rows = [[row["shape"], ", ".join(f"{name} {share:.0f} %" for share, name in row["profile"][:6])] for row in found]
        return ("\nWhere the time of a plain run goes, as `perf` samples it (`bench/peers/samples.py`):\n\n" +
                table(["shape", "functions"], rows))

    def text(self):
        ways = sorted({f"{peer}: {way}" for row in self.results["attention"] for peer, way in row["ways"].items()
                       if peer == "ONNX Runtime"})
        parts = [f"## {self.kind}\n\n{self.machine()}\n### Core attention, F32\n\n{self.attention()}",
                 "\n### Against others, GFLOP/s\n\n" + self.contest(
                     "attention", goals.PEER, goals.PEER_MEAN, lambda row, s: f"{row['operations'] / s / 1e9:.0f}"),
                 f"\nEach by the quickest of its ways for the shape ({'; '.join(ways)}). PyTorch eager keeps the matrix of "
                 "weights, as tools of inspection do; it does not count among the fastest here.\n",
                 "\n### What statistics cost\n\n" + self.statistics(), self.bf16(),
                 "\n### The whole encoder (all-MiniLM-L6-v2, F32)\n\n" + self.encoder(),
                 "\nAgainst others, tokens/s:\n\n" + self.contest(
                     "encoder", goals.ENCODER, None, lambda row, s: f"{row['tokens'] / s:.0f}"),
                 self.decoder() + "\n### Memory\n\n" + self.memory(), "\n### Tokenizer\n\n" + self.tokenizer(),
                 "\n### How the cost grows\n\n" + self.growth()]
        goal_table = "\n### Goals\n\n" + table(["what", "must", "medal", "reached", ""], self.goals)
        return "\n".join(parts).replace("\n\n\n", "\n\n") + goal_table + self.missed()


def pages(folder):
    """File below docs/ -> its text, from the results in a folder."""
    texts, pictures = [INTRODUCTION], {}
    for file in sorted(folder.glob("*.json")):
        notes = file.with_suffix(".md")
        section = Section(json.loads(file.read_text(encoding="utf-8")),
                          notes.read_text(encoding="utf-8") if notes.exists() else "")
        texts.append(section.text())
        pictures.update([section.picture()])
    return {"performance.md": "\n".join(texts), **pictures}


def main():
    RESULTS.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 1:
        results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
        shutil.copy(sys.argv[1], RESULTS / f"{slug(kind_of(results['bench']['machine']))}.json")
    for name, text in pages(RESULTS).items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
