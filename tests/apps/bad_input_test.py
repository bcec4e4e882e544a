#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input gets one clear line and the right exit code, and leaves nothing half-written."""
import json, os, resource, shutil, signal, struct, subprocess, sys, tempfile, time, unittest
from pathlib import Path

from program import CAT, PROGRAM, document, run

sys.path.insert(0, str(Path(__file__).resolve().parent))
MINILM = Path(json.loads(subprocess.run([PROGRAM, "models", "--json"], capture_output=True, check=True).stdout)["models"][0]["path"])


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def refused(self, code, words, *command, **more):
        done = run(*command, **more)
        lines = [line for line in done.err.splitlines() if not line.startswith("clearhead: model ")]
        self.assertEqual(done.returncode, code, done.err)
        self.assertEqual(done.out, "")
        self.assertEqual(len(lines), 1, done.err)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, lines[0])

    def copy_of_minilm(self):
        """A folder like minilm's whose files can be replaced one by one."""
        model = self.folder / "model"
        model.mkdir()
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (model / name).symlink_to(MINILM / name)
        return model

    def replace(self, path, content):
        path.unlink()
        path.write_bytes(content)

    # benchmarks

    def test_bench(self):
        self.refused(2, ["attention", "speed"], "bench", "speed")
        self.refused(2, ["BATCHxHEADS", "8 by 8"], "bench", "attention", "--shape", "8 by 8")
        self.refused(2, ["BATCHxLENGTH", "128"], "bench", "encoder", "--shape", "128")
        self.refused(2, "--shape with attention, encoder or decoder", "bench", "--shape", "1x8 64 64")
        self.refused(2, ["one of", "AVX9"], "bench", "--target", "AVX9")
        for line in (b"{", b"[1]", b'{"run": "none"}x', b'{"run": 7, "seconds": 0}', b'{"prepare": "speed"}',
                     b'{"prepare": "attention", "shape": "1x8 64 64"}'):
            self.refused(2, "[bench]", "bench", "--turns", stdin=line)

    # texts

    def test_no_text(self):
        self.refused(2, "none of them", "attend")
        self.refused(2, "both", "attend", CAT, "--file", "x")

    def test_notes_and_errors_name_the_line_of_the_file(self):
        lines = b"the cat\n\n  \nthe \xff cat\n\n" + "\u56fe\u4e66\u9986\u5728\u54ea\u91cc\n".encode()  # lines 1, 4 and 6
        for command in ("attend", "heads", "tokenize"):
            done = run(command, "--lines", "--file", "-", "--model", "minilm", stdin=lines)
            self.assertEqual(done.returncode, 0, done.err)
            notes = [line for line in done.err.splitlines() if "reading through" not in line]
            self.assertEqual(len(notes), 2, notes)
            self.assertTrue(notes[0].startswith("clearhead: line 4: byte 4 of the text is not UTF-8"), notes)
            self.assertTrue(notes[1].startswith("clearhead: line 6: minilm has no piece for"), notes)
            self.refused(2, "line 5: ", command, "--json", "--lines", "--file", "-", "--model", "minilm", stdin=b"a\n\n\n\n" + b"word " * 600)

    def test_a_missing_file_and_a_folder_as_file(self):
        self.refused(1, "No such file", "attend", "--file", str(self.folder / "none"))
        self.refused(1, "regular file", "attend", "--file", str(self.folder))

    def test_an_empty_text(self):
        for text in ("", "   ", "\n\t", "\x7f\u200b"):
            self.refused(2, "at least one token", "attend", text)
            self.refused(2, "at least one token", "lesson", text)

    def test_a_megabyte_without_a_space(self):
        begin = time.monotonic()
        done = run("tokenize", "--file", "-", "--truncate", stdin=b"a" * 1_000_000)
        self.assertEqual(done.returncode, 0, done.err)
        self.refused(2, ["512"], "attend", "--file", "-", stdin=b"!" * 1_000_000)
        self.assertLess(time.monotonic() - begin, 60)

    def test_invalid_utf8_and_nul(self):
        for data in (b"\xff\xfe cat", b"caf\xc3", b"\xed\xa0\x80 sat", b"\xf4\x90\x80\x80 on", b"a\0b", b"\x1b[31mred\x07", "\u202eevil".encode()):
            done = run("attend", "--file", "-", "--layer", "0", "--head", "0", stdin=data)
            self.assertEqual(done.returncode, 0, done.err)
            for control in "\x00\x07\x1b\u202e":
                self.assertNotIn(control, done.out)
            found = document("tokenize", "--file", "-", stdin=data)
            for token in found["tokens"]:
                begin, end = token["offsets"]
                self.assertLessEqual(end, len(found["text"].encode()))

    def test_a_token_that_looks_like_markup(self):
        text = "</script><img src=x onerror=alert(1)> [MASK] {json: \"\\\"}"
        self.assertEqual(document("attend", text, "--layer", "0")["text"], text)

    def test_more_tokens_than_positions(self):
        long = "cat " * 600
        trace = str(self.folder / "t.safetensors")
        for command in (["attend"], ["attend", "--layer", "0", "--json"], ["heads"], ["tokenize"], ["lesson"], ["verify"], ["record", "--output", trace]):
            self.refused(2, ["512", "602", "shorten the text, or let it be truncated (--truncate)"], *command, long)
        for command in ("heads", "tokenize"):
            self.refused(2, ["line 2: ", "602", "(--truncate)"], command, "--lines", "--json", "--file", "-", stdin=f"a\n{long}\n".encode())
        done = run("tokenize", long, "--truncate", "--json")
        self.assertEqual(len(json.loads(done.out)["tokens"]), 512)
        self.assertIn("cut", done.err)

    # flags

    def test_wrong_flags(self):
        self.refused(2, "--nonsense", "attend", CAT, "--nonsense")
        self.refused(2, "whole number", "attend", CAT, "--layer", "-1")
        self.refused(2, "whole number", "lesson", "--toy", "--seed", "18446744073709551616")
        self.refused(2, "one of attend", "frobnicate")
        self.refused(2, ".safetensors", "record", CAT, "--output", str(self.folder / "trace"))
        self.refused(1, "No such file", "verify", str(self.folder / "none.safetensors"))
        self.refused(2, "line 2: ", "attend", "--lines", "--json", "--file", "-", stdin=b"a\n" + b"word " * 600 + b"\nb\n")
        self.refused(2, "0 to 5", "attend", CAT, "--layer", "6", "--head", "0")
        self.refused(2, "0 to 11", "attend", CAT, "--layer", "5", "--head", "12")
        self.refused(2, "--layer", "attend", CAT, "--head", "3")
        self.refused(2, "number", "attend", CAT, "--memory-limit", "lots")
        self.refused(2, "en or zh", "attend", CAT, "--lang", "fr")
        self.refused(2, "#0 to #7", "attend", CAT, "--from", "#8")
        self.refused(2, "#1, #5", "attend", CAT, "--from", "the")
        self.refused(2, "dog", "attend", CAT, "--from", "dog")
        self.refused(2, "weight", "record", CAT, "--stages", "weight", "--output", str(self.folder / "t.safetensors"))
        self.refused(2, "logits", "record", CAT, "--stages", "weights,logits", "--output", str(self.folder / "t.safetensors"))
        self.refused(2, "--layers", "record", CAT, "--layers", "0-9", "--output", str(self.folder / "t.safetensors"))
        self.refused(2, "divid", "lesson", "--toy", "--d-model", "100", "--heads", "7")
        self.refused(2, "--toy", "lesson", CAT, "--split", "input", "--model", "minilm")
        self.refused(2, "question", "lesson", "--toy", "--step", "none")
        self.refused(2, "memory", "attend", "cat " * 500, "--memory-limit", "1K")
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("frobnicate").returncode, 2)
        self.assertEqual(list(self.folder.iterdir()), [])

    # models

    def test_no_such_model(self):
        self.refused(1, "minilm", "attend", CAT, "--model", "minlm")
        self.refused(1, "config.json", "attend", CAT, "--model", str(self.folder))

    def test_a_folder_without_tokenizer(self):
        model = self.copy_of_minilm()
        (model / "tokenizer.json").unlink()
        self.refused(1, "tokenizer.json", "attend", CAT, "--model", str(model))

    def test_damaged_model_files(self):
        model = self.copy_of_minilm()
        path = model / "model.safetensors"
        whole = (MINILM / "model.safetensors").read_bytes()
        for content in (b"", whole[:4], whole[:1000], whole[:len(whole) // 2], whole + b"x", struct.pack("<Q", 1 << 60) + whole[8:], b"\xff" * 4096):
            self.replace(path, content)
            self.refused(1, "model.safetensors", "attend", CAT, "--model", str(model))

    def test_configs_that_do_not_fit(self):
        model = self.copy_of_minilm()
        good = json.loads((MINILM / "config.json").read_text())
        for key, value, word in (("model_type", "gpt9", "gpt9"), ("hidden_act", "swoosh", "swoosh"), ("num_attention_heads", 7, "7"),
                                 ("num_attention_heads", 0, "num_attention_heads"), ("num_hidden_layers", -1, "num_hidden_layers"),
                                 ("position_embedding_type", "relative_key", "relative_key"), ("hidden_size", 1 << 62, "hidden_size"),
                                 ("vocab_size", 100, "[100, 384]"), ("num_hidden_layers", 7, "encoder.layer.6"), ("layer_norm_eps", "small", "layer_norm_eps")):
            self.replace(model / "config.json", json.dumps({**good, key: value}).encode())
            self.refused(1, word, "attend", CAT, "--model", str(model))
        for content in (b"", b"[]", b"{", b"\xff", b'{"model_type": "bert"}', b"[" * 100_000):
            self.replace(model / "config.json", content)
            self.refused(1, "config.json", "attend", CAT, "--model", str(model))

    def test_tokenizers_that_do_not_fit(self):
        model = self.copy_of_minilm()
        good = json.loads((MINILM / "tokenizer.json").read_text())
        for key, value, word in (("model", {"type": "Letters", "vocab": {}, "merges": []}, "Letters"), ("normalizer", {"type": "NFKC9"}, "NFKC9"), ("version", "2.0", "2.0"),
                                 ("post_processor", {"type": "Foo"}, "Foo")):
            self.replace(model / "tokenizer.json", json.dumps({**good, key: value}).encode())
            self.refused(1, word, "tokenize", CAT, "--model", str(model))

    def test_a_normalizer_that_makes_a_text_grow_without_end(self):
        model = self.copy_of_minilm()
        good = json.loads((MINILM / "tokenizer.json").read_text())
        ten = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
        self.replace(model / "tokenizer.json", json.dumps({**good, "normalizer": {"type": "Sequence", "normalizers": [ten] * 30}}).encode())
        self.refused(2, ["text", "when it is normalized"], "tokenize", "cat", "--model", str(model))

    # output

    def test_a_closed_pipe_ends_quietly(self):
        shell = subprocess.run(f"'{PROGRAM}' heads '{CAT}' --model minilm | head -n 1", shell=True, capture_output=True)
        self.assertEqual((shell.returncode, shell.stderr), (0, b""))

    @unittest.skipUnless(os.path.exists("/dev/full"), "a system without /dev/full")
    def test_no_room_on_standard_output(self):
        with open("/dev/full", "w") as full:
            done = run("attend", CAT, "--model", "minilm", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.err)

    def test_no_room_for_a_trace_leaves_the_old_one(self):
        path = self.folder / "t.safetensors"
        path.write_bytes(b"old")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        done = subprocess.run([PROGRAM, "record", CAT, "--output", str(path), "--model", "minilm"], capture_output=True, preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["t.safetensors"])
        self.assertEqual(path.read_bytes(), b"old")

    def test_no_output_replaces_what_is_read(self):
        model = self.copy_of_minilm()
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (model / name).unlink()
            shutil.copy(MINILM / name, model / name)
        (model / "link.safetensors").symlink_to("model.safetensors")
        os.link(model / "model.safetensors", model / "hard.safetensors")
        text = self.folder / "text.safetensors"
        text.write_text(CAT)
        before = {path: path.read_bytes() for path in [*model.iterdir(), text]}
        flags = ["--model", str(model)]
        for name in ("model.safetensors", "link.safetensors", "hard.safetensors"):
            self.refused(2, ["[record --output]", "an output that is no input", name], "record", CAT, *flags, "--output", str(model / name))
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            self.refused(2, "[lesson --output]", "lesson", CAT, *flags, "--output", str(model / name))
            self.refused(2, "[bench --output]", "bench", "tokenizer", "--quick", *flags, "--output", str(model / name))
            self.refused(2, "[bench --output]", "bench", "encoder", "--quick", *flags, "--output", str(model / name))
        for command in ("record", "lesson"):
            self.refused(2, "text.safetensors", command, "--file", str(text), *flags, "--output", str(text))
            with open(text, "rb") as file:
                done = subprocess.run([PROGRAM, command, "-", *flags, "--output", str(text)], stdin=file, capture_output=True)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual({path: path.read_bytes() for path in [*model.iterdir(), text]}, before)
        self.assertEqual(run("record", CAT, *flags, "--output", str(model / "trace.safetensors")).returncode, 0)  # beside them
        self.assertEqual(run("record", CAT, *flags, "--output", str(model / "trace.safetensors")).returncode, 0)

    def test_a_trace_into_a_link_goes_where_it_leads(self):
        (self.folder / "far").mkdir()
        link = self.folder / "link.safetensors"
        link.symlink_to("far/t.safetensors")
        for _ in range(2):  # into nothing, and over a file
            self.assertEqual(run("record", CAT, "--stages", "query", "--output", str(link)).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertEqual([path.name for path in (self.folder / "far").iterdir()], ["t.safetensors"])

    def test_a_trace_into_no_folder(self):
        self.refused(1, "none", "record", CAT, "--output", str(self.folder / "none/t.safetensors"))

    def test_ctrl_c(self):
        lines = self.folder / "lines"
        lines.write_text("cat sat mat " * 150 + "\n", encoding="utf-8")
        lines.write_text(lines.read_text() * 2000)
        with subprocess.Popen([PROGRAM, "attend", "--lines", "--file", str(lines), "--model", "minilm"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            time.sleep(1.5)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=60), 130)

    def test_a_terminal_that_closes_leaves_no_half_trace(self):
        text = self.folder / "text"
        text.write_text("cat sat mat " * 40, encoding="utf-8")
        path = self.folder / "t.safetensors"
        with subprocess.Popen([PROGRAM, "record", "--file", str(text), "--stages", "all", "--output", str(path), "--model", "minilm"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            while child.poll() is None and not list(self.folder.glob("t.safetensors*")):
                time.sleep(.002)
            child.send_signal(signal.SIGHUP)
            self.assertIn(child.wait(timeout=60), (0, 130))  # 0: it was done before
        self.assertEqual([p.name for p in self.folder.iterdir() if ".part-" in p.name], [])

    def test_ctrl_c_while_waiting_for_input(self):
        with subprocess.Popen([PROGRAM, "tokenize", "-", "--model", "minilm"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            time.sleep(.5)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=10), 130)

    # traces

    def test_a_trace_that_tells_other_words(self):
        path = self.folder / "t.safetensors"
        self.assertEqual(run("record", CAT, "--output", str(path)).returncode, 0)
        path.write_bytes(path.read_bytes().replace(b"cat", b"dog"))
        self.refused(1, "tokens", "verify", str(path))

    def test_a_damaged_trace_of_any_name(self):
        made, path = self.folder / "t.safetensors", self.folder / "kept"
        self.assertEqual(run("record", CAT, "--stages", "all", "--output", str(made)).returncode, 0)
        made.rename(path)
        good = path.read_bytes()
        self.assertEqual(run("verify", str(path)).returncode, 0)
        path.write_bytes(good[:-4] + struct.pack("<f", 7e7))
        self.assertEqual(run("verify", str(path)).returncode, 1)
        path.write_bytes(good.replace(b'\\"causal\\": \\"none\\"', b'\\"causal\\": \\"left\\"'))
        self.assertFalse(path.read_bytes() == good)
        self.refused(1, "the attention of this model", "verify", str(path))

    def test_a_trace_with_nothing_to_check(self):
        path = self.folder / "t.safetensors"
        self.assertEqual(run("record", CAT, "--stages", "weights", "--output", str(path)).returncode, 0)
        done = run("verify", str(path))
        self.assertEqual(done.returncode, 1)
        self.assertIn("--end-to-end", done.err)

    def test_a_model_of_nan(self):
        model = self.copy_of_minilm()
        whole = bytearray((MINILM / "model.safetensors").read_bytes())
        begin = 8 + struct.unpack("<Q", whole[:8])[0]
        whole[begin:] = struct.pack("<f", float("nan")) * ((len(whole) - begin) // 4)
        self.replace(model / "model.safetensors", bytes(whole))
        done = run("attend", CAT, "--model", str(model))
        self.assertIn("not finite", done.err)
        lines = run("heads", "--lines", "--file", "-", "--model", str(model), stdin=b"cat\n\nmat\n")
        for line in ("line 1", "line 3"):
            self.assertIn(f"clearhead: {line}: values are not finite, first seen at ", lines.err)
        self.assertEqual(run("verify", CAT, "--model", str(model)).returncode, 1)
        page = run("inspect", str(model))
        self.assertEqual(page.out.count("values are not finite"), 23 + 3, page.out)  # of rows, and warnings
        self.assertIn("of its values are not finite", page.out)
        self.assertIn("more tensors", page.out)
        self.assertEqual(len(document("inspect", str(model))["warnings"]), 4)

    def test_damaged_traces(self):
        path = self.folder / "t.safetensors"
        self.assertEqual(run("record", CAT, "--stages", "weights,kernel_scores", "--output", str(path)).returncode, 0)
        whole = path.read_bytes()
        for content in (b"", whole[:100], whole[:-4], whole.replace(b"layers.0.weights", b"layers.0.weighty"), whole.replace(b'"layers.0.weights', b'"layers.9.weights')):
            path.write_bytes(content)
            self.refused(1, "t.safetensors", "verify", str(path))

    def test_op(self):
        path = self.folder / "in.safetensors"
        head = json.dumps({"input": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        path.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 0, 0))
        out = self.folder / "out.safetensors"
        self.assertEqual(run("op", "softmax", str(path), str(out)).returncode, 0)
        self.assertEqual(struct.unpack("<2f", out.read_bytes()[-8:]), (.5, .5))
        out.unlink()
        whole = path.read_bytes()
        os.link(path, self.folder / "hard.safetensors")
        (self.folder / "soft.safetensors").symlink_to(path)
        for name in ("in.safetensors", "hard.safetensors", "soft.safetensors"):
            self.refused(2, ["an output that is no input", name], "op", "softmax", str(path), str(self.folder / name))
            self.refused(2, "an output that is no input", "op", "softmax", str(self.folder / name), str(path))
        self.assertEqual(path.read_bytes(), whole)
        self.refused(2, "axes", "op", "softmax", str(path), str(out), "--attributes", '{"axes": 1}')
        self.refused(2, "softplus", "op", "softplus", str(path), str(out))
        self.refused(2, "soft_cap", "op", "attention", str(path), str(out), "--attributes", '{"soft_cap": 1}')
        self.refused(2, "Q", "op", "attention", str(path), str(out))
        self.refused(2, "JSON", "op", "softmax", str(path), str(out), "--attributes", "{")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
