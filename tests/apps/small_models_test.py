#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders as chat models come in: fewer pieces than rows, templates, ends, damage; and traces that name such folders."""
import json, math, os, shutil, struct, tempfile, unittest
from pathlib import Path

from program import document, run

DATA = Path(__file__).resolve().parent.parent / "model/data/decoders"
ROWS, POSITIONS = 48, 64
PIECES = ["<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "\u0120", "\u010a", *"!?.,;:0123456789-+*"]
MARK = "<|im_start|>"


def tokenizer(pieces, added=()):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = [{"id": pieces.index(name), "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for name in added]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "vocab": {piece: place for place, piece in enumerate(pieces) if piece}, "merges": []}
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
                       "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
                       "model": model})


class SmallModels(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def model(self, name="model", family="llama", pieces=PIECES, added=("<|im_end|>",), files=None, norm=None):
        """A decoder of random parameters that reads bytes. norm: what one gain of its last norm becomes."""
        path = self.folder / name if isinstance(name, str) else os.path.join(os.fsencode(self.folder), name)
        os.mkdir(path)
        place = lambda file: os.path.join(path, file if isinstance(path, Path) else file.encode())
        config = json.loads((DATA / family / "config.json").read_text())
        config["eos_token_id"] = None
        content = bytearray((DATA / family / "model.safetensors").read_bytes())
        if norm is not None:
            size, = struct.unpack("<Q", content[:8])
            begin = json.loads(content[8:8 + size])["model.norm.weight"]["data_offsets"][0]
            content[8 + size + begin:12 + size + begin] = struct.pack("<f", norm)
        files = {"config.json": json.dumps(config), "tokenizer.json": tokenizer(pieces, added), **(files or {})}
        for file, text in files.items():
            with open(place(file), "wb") as output:
                output.write(text.encode() if isinstance(text, str) else text)
        with open(place("model.safetensors"), "wb") as output:
            output.write(content)
        return path

    def refused(self, done, *words, code=1):
        self.assertEqual((done.returncode, done.out), (code, ""), done.err)
        self.assertEqual(len(done.err.splitlines()), 1, done.err)
        for word in words:
            self.assertIn(word, done.err)

    def test_rows_without_a_piece_are_never_written(self):
        path = self.model(pieces=PIECES[:29])
        for flags in ((), ("--attend",), ("--temperature", "100", "--seed", "3"), ("--temperature", "9", "--top-k", "40")):
            done = run("generate", "the cat", "--model", path, "--max-tokens", "30", *flags)
            self.assertEqual((done.returncode, done.err), (0, ""), flags)
            found = document("generate", "the cat", "--model", path, "--max-tokens", "30", *flags)
            self.assertEqual(len(found["ids"]), 30)
            self.assertLess(max(found["ids"]), 29)
        holes = [piece if piece in (PIECES[0], "\u0120", "9", *"theca") else "" for piece in PIECES[:40]]
        found = document("generate", "the cat", "--model", self.model("holes", pieces=holes), "--max-tokens", "30")
        self.assertTrue(all(holes[token] for token in found["ids"]), found["ids"])
        trace = self.folder / "t.safetensors"
        recorded = document("record", "the cat", "--model", path, "--max-tokens", "30", "--output", trace)
        self.assertEqual(recorded["tokens"], 7 + 30)

    def test_gpt_2_and_gpt_neox_write(self):
        for family in ("gpt2", "gpt_neox"):
            found = document("generate", "the cat", "--model", self.model(family, family), "--max-tokens", "9", "--attend")
            self.assertEqual((len(found["ids"]), len(found["looks"])), (9, 9), family)

    def test_a_template_beside_the_parameters_is_recognised(self):
        chatml = "{% for m in messages %}{{ '" + MARK + "' + m.role }}{% endfor %}"
        rows = [{"name": "tool_use", "template": "[INST]"}, {"name": "default", "template": chatml}]
        pieces = [PIECES[0], MARK, *PIECES[1:47]]
        path = self.model("plain", pieces=pieces, added=(PIECES[0], MARK))
        ask = lambda path, style: run("generate", "hi", "--model", path, "--chat", style, "--max-tokens", "0", "--json")
        told = json.loads(ask(path, "chatml").out)["prompt_ids"]
        self.refused(ask(path, "auto"), "a model without a template", "name a style", code=2)
        for number, files in enumerate(({"tokenizer_config.json": json.dumps({"chat_template": chatml})},
                                        {"tokenizer_config.json": json.dumps({"chat_template": rows})},
                                        {"chat_template.jinja": chatml, "tokenizer_config.json": "{"})):
            path = self.model(f"chat{number}", pieces=pieces, added=(PIECES[0], MARK), files=files)
            self.assertEqual(json.loads(ask(path, "auto").out)["prompt_ids"], told, files)
        path = self.model("other", files={"chat_template.jinja": "{{ '<|user|>\x1b[31m' }}"})
        self.refused(ask(path, "auto"), "begins \"{{ '<|user|>\\x1b[31m' }}\"", code=2)
        path = self.model("damaged", files={"tokenizer_config.json": "{"})
        self.refused(ask(path, "auto"), "tokenizer_config.json", "not JSON")
        self.assertEqual(run("attend", "hi", "--model", path).returncode, 0)

    def test_ends_that_only_the_generation_config_names_end_a_text(self):
        ids = document("generate", "the cat", "--model", self.model(), "--max-tokens", "9")["ids"]
        for number, value in enumerate((ids[3], [ids[3]], [-1, ids[3], ROWS])):
            path = self.model(f"end{number}", files={"generation_config.json": json.dumps({"eos_token_id": value})})
            found = document("generate", "the cat", "--model", path, "--max-tokens", "9")
            self.assertEqual((found["ids"], found["stopped_by"]), (ids[:ids.index(ids[3])], "end"), value)
        for number, text in enumerate(("{", "[]", '{"eos_token_id": "a"}', '{"eos_token_id": [1.5]}', '{"eos_token_id": 99}',
                                       '{"eos_token_id": 18446744073709551615}', "\ud800".encode("utf-8", "surrogatepass"))):
            path = self.model(f"bad{number}", files={"generation_config.json": text})
            done = run("generate", "the cat", "--model", path, "--max-tokens", "9", "--json")
            self.assertEqual(json.loads(done.out)["ids"], ids, text)
            self.assertEqual(len(done.err.splitlines()), 1, done.err)
            for word in ("generation_config.json", "expected", "found", "not used"):
                self.assertIn(word, done.err)

    def test_logits_that_are_not_finite_are_told(self):
        told = "clearhead: logits are not finite, first seen where new token 0 was chosen"
        path = self.model(norm=math.inf)
        for flags in ((), ("--attend",), ("--json",)):
            done = run("generate", "the cat", "--model", path, "--max-tokens", "3", *flags)
            self.assertEqual(done.returncode, 0, done.err)
            self.assertEqual([line[:len(told)] for line in done.err.splitlines()], [told], flags)
        done = run("record", "the cat", "--model", path, "--max-tokens", "3", "--output", self.folder / "t.safetensors")
        self.assertIn(told, done.err)

    def test_a_record_says_that_the_positions_are_full(self):
        path, trace = self.model(), self.folder / "t.safetensors"
        told = f"clearhead: stopped at {POSITIONS} tokens, the positions of the model\n"
        done = run("record", "the cat", "--model", path, "--max-tokens", "300", "--stages", "embedding", "--output", trace)
        self.assertEqual((done.returncode, told in done.err), (0, True), done.err)
        self.assertEqual(run("generate", "the cat", "--model", path, "--max-tokens", "300").err, told)
        done = run("record", "the cat", "--model", path, "--max-tokens", "5", "--stages", "embedding", "--output", trace)
        self.assertNotIn("stopped", done.err)

    def test_stretched_positions_are_told_with_their_number(self):
        path, trace = self.model(family="llama_longrope"), self.folder / "t.safetensors"  # trained with 16 positions
        told = "clearhead: positions are stretched for 27 tokens, those of the prompt and of --max-tokens"
        for command in (("generate",), ("record", "--stages", "token_embedding", "--output", trace)):
            for count, said in (("20", True), ("9", False)):
                done = run(command[0], "the cat", *command[1:], "--model", path, "--max-tokens", count)
                self.assertEqual((done.returncode, told in done.err), (0, said), done.err)
        checked = run("verify", trace, "--model", path)
        self.assertEqual(checked.returncode, 0, checked.err + checked.out)

    def test_the_model_of_a_trace_is_found_from_the_trace(self):
        self.model()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        record = lambda model, trace: run("record", "the cat", "--model", model, "--output", trace, cwd=self.folder)
        self.assertEqual(record("model", "t.safetensors").returncode, 0)
        self.assertEqual(run("verify", "t.safetensors", cwd=self.folder).returncode, 0)
        self.assertEqual(run("verify", "../t.safetensors", cwd=elsewhere).returncode, 0)
        shutil.move(self.folder / "t.safetensors", elsewhere / "t.safetensors")
        self.refused(run("verify", "t.safetensors", cwd=elsewhere), '"model"', "from here or from the folder of the trace",
                     "name it with --model")
        self.assertEqual(run("verify", "t.safetensors", "--model", "../model", cwd=elsewhere).returncode, 0)
        odd = os.fsdecode(self.model(b"m\xff"))
        self.assertEqual(record(odd, "odd.safetensors").returncode, 0)
        done = run("verify", "odd.safetensors", cwd=self.folder)
        self.refused(done, "m\ufffd", "name it with --model")
        self.assertEqual(run("verify", "odd.safetensors", "--model", odd, cwd=self.folder).returncode, 0)


if __name__ == "__main__":
    unittest.main()
