#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command on the main road: results, JSON against its schema, traces, the published weights."""
import json, math, re, subprocess, sys, tempfile, unittest
from pathlib import Path

from program import BOOK, CAT, PROGRAM, Tensors, document, run, small_decoder

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/views"))
from validate_schema import validate  # noqa: E402


def check_schema(name, value):
    schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    validate(value, schema)


class Notes(unittest.TestCase):
    def note(self, text, model):
        done = run("tokenize", "--file", "-", "--model", model, stdin=text)
        self.assertEqual(done.returncode, 0, done.err)
        return done.err

    def test_what_a_text_loses_on_its_way_is_told(self):
        self.assertNotIn("UTF-8", self.note(b"the cat", "minilm"))
        self.assertIn("UTF-8", self.note(b"ab\xff c", "minilm"))
        self.assertIn("the text begins with \"[CLS]\", which minilm puts in front of every text: it stands there twice",
                      self.note(b"[CLS] the cat", "minilm"))
        self.assertNotIn("twice", self.note(b"the [CLS]", "minilm"))
        smollm2 = "smollm2-135m-instruct"
        self.assertIn(f"{smollm2} has no piece for 2 bytes of the text; no token stands for them", self.note(b"a\x04b\x06", smollm2))
        self.assertNotIn("no piece", self.note(b"a\x05b", smollm2))


class Attend(unittest.TestCase):
    def test_the_published_weights(self):
        for layer, head, key, weight in ((5, 11, "cat", .89), (5, 3, "mat", .43), (5, 3, "cat", .17), (5, 5, "mat", .38), (0, 2, "cat", 1.00)):
            found = document("attend", CAT, "--layer", str(layer), "--head", str(head))
            texts = [token["text"].lower() for token in found["tokens"]]
            self.assertAlmostEqual(found["weights"][texts.index("sat")][texts.index(key)], weight, delta=.005)

    def test_the_published_weights_of_the_chinese_sentence(self):
        heads = ((0, 2, "\u7684", .52), (0, 2, "\u539a", .27), (2, 1, "\u56fe\u4e66\u9986", .31), (0, 6, "\u56fe\u4e66\u9986", .23),
                 (7, 4, "\u501f", .28), (7, 4, "\u4e00\u672c", .15), (4, 10, "\u501f", .22))
        for layer, head, key, weight in heads:
            found = document("attend", BOOK, "--layer", str(layer), "--head", str(head))
            texts = [token["text"] for token in found["tokens"]]
            place = len(texts) - 1 - texts[::-1].index(key)
            self.assertAlmostEqual(found["weights"][texts.index("\u4e66")][place], weight, delta=.005)

    def test_the_text_chooses_the_model(self):
        chosen = run("attend", BOOK)
        self.assertIn("model multilingual-e5-small, as minilm has no piece for some Chinese of the text", chosen.err)
        self.assertEqual(chosen.out, run("attend", BOOK, "--model", "multilingual-e5-small").out)
        page = run("attend", BOOK, "--from", "\u4e66").out
        self.assertIn("\u56fe\u4e66\u9986  layer 2 head 1 31 %, layer 0 head 6 23 %", page)
        self.assertIn("\u501f      layer 7 head 4 28 %, layer 4 head 10 22 %", page)
        chinese = run("attend", BOOK, "--lang", "zh")
        self.assertEqual(chinese.returncode, 0, chinese.err)
        self.assertIn("\u8bcd\u5143", chinese.out)
        self.assertIn("multilingual-e5-small", run("attend", "--file", "-", "--lines", stdin=f"one\n{BOOK}\n".encode()).err)

    def test_letters_of_any_script_choose_the_model(self):
        for text in ("\u0e41\u0e21\u0e27\u0e19\u0e31\u0e48\u0e07", "a cat is \u0b92\u0bb0\u0bc1"):  # Thai, Tamil
            self.assertIn("model multilingual-e5-small, as minilm has no piece for some letters of the text", run("tokenize", text).err)
        for text in ("The caf\u00e9 \u2603 \U0001f600", "na\u00efve \u201cquotes\u201d", CAT, "12"):  # signs alone choose no other
            self.assertIn("model minilm (", run("tokenize", text).err)

    def test_every_command_that_reads_a_text_says_what_is_odd_about_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            model = small_decoder(folder, "mistral", "stranger.weight")
            for command in (["attend"], ["heads"], ["lesson"], ["tokenize"], ["record", "--output", f"{folder}/t.safetensors"], ["verify"]):
                done = run(command[0], "ab", *command[1:], "--model", model)
                self.assertEqual(done.returncode, 0, done.err)
                self.assertIn("1 tensor of the model file is not used: \"stranger.weight\"", done.err, command)

    def test_one_head_obeys_its_schema_and_its_own_sums(self):
        found = document("attend", CAT, "--layer", "5", "--head", "11")
        check_schema("attend_head", found)
        for row, reference, total, lse in zip(found["weights"], found["row_reference"], found["row_sum"], found["lse"]):
            self.assertAlmostEqual(math.fsum(row), 1, delta=1e-6)
            self.assertAlmostEqual((reference + math.log2(total)) * math.log(2), lse, delta=1e-5)

    def test_the_overview_tells_sat_looks_at_cat_among_the_first(self):
        found = document("attend", CAT)
        check_schema("attend", found)
        order = [(head["layer"], head["head"]) for head in found["heads"]]
        self.assertEqual(len(order), 72)
        self.assertIn((5, 11), order[:3])
        self.assertIn((5, 3), order[:6])
        page = run("attend", CAT)
        self.assertEqual(page.returncode, 0, page.err)
        self.assertIn("sat", page.out)
        self.assertLessEqual(len(page.out.splitlines()), 45)
        self.assertNotIn("\x1b", page.out)

    def test_from_a_token(self):
        found = document("attend", CAT, "--from", "sat")
        self.assertTrue(all(row["query"] == 3 for row in found["rows"]))
        self.assertEqual(run("attend", CAT, "--from", "#3").out, run("attend", CAT, "--from", "sat").out)

    def test_words_and_hidden_special_tokens(self):
        for flags in (["--words"], ["--hide-special"], ["--layer", "2", "--head", "1", "--words", "--hide-special"]):
            done = run("attend", "Unbelievable tokenizers tokenize unhappily", *flags)
            self.assertEqual(done.returncode, 0, done.err)

    def test_pictures_fit_and_ascii_is_ascii(self):
        for width in ("40", "80", "200"):
            done = run("attend", CAT, "--layer", "0", "--head", "0", "--ascii", env={"COLUMNS": width})
            self.assertTrue(done.out.isascii())
            self.assertLessEqual(max(map(len, done.out.splitlines())), int(width))

    def test_tables_fit_a_narrow_terminal_and_lose_nothing(self):
        narrow, wide = {"COLUMNS": "40"}, {"COLUMNS": "200"}
        letters = lambda text: sorted(re.sub(r"[^0-9A-Za-z]+", "", text))
        commands = (["verify", CAT], ["inspect", "minilm"], ["inspect", "smollm2-135m-instruct", "--all"], ["models"], ["heads", CAT], ["tokenize", CAT],
                    ["generate", CAT, "--max-tokens", "8", "--attend"])
        for command in commands:
            for flags in ([], ["--ascii"]):
                page, whole = (run(*command, *flags, env=width).out for width in (narrow, wide))
                self.assertLessEqual(max(map(len, page.splitlines())), 40, page)
                if command[0] == "inspect":
                    self.assertEqual(letters(page), letters(whole))
                elif command[0] == "generate":
                    self.assertEqual(page.count("layer "), whole.count("layer "))
                else:
                    self.assertNotRegex(page.split("*")[0], r"\.\.\n|\u2026\n")  # no line is cut
        told = run("heads", CAT, "--ascii", env=narrow).out
        self.assertIn("a wider terminal shows more: top, prev", " ".join(told.split()))
        self.assertNotIn("a wider terminal", run("heads", CAT, env=wide).out)
        lines = run("verify", CAT, env=narrow).out.splitlines()
        place = lines.index("raw_scores")
        self.assertRegex(lines[place + 1], r"^    difference [0-9.e+-]+, allowed")
        state = run("models", env=narrow).out.splitlines()
        self.assertEqual(state[:2], ["minilm", "    family bert, layers x heads 6 x 12,"])

    def test_ascii_is_english(self):
        commands = (["lesson", "--toy"], ["attend", CAT], ["heads", CAT], ["tokenize", CAT], ["attend", CAT, "--layer", "0", "--head", "0"],
                    ["verify", CAT], ["models"], ["inspect", "minilm"], ["lesson", "--toy", "--json"])
        for command in commands:
            refused = run(*command, "--ascii", "--lang", "zh")
            self.assertEqual((refused.returncode, refused.out), (2, ""), command)
            self.assertEqual(refused.err.splitlines()[-1], "clearhead: [--ascii] expected --lang en beside it; found --lang zh; ASCII has no Chinese characters")
            wished = run(*command, "--ascii", env={"LC_ALL": "zh_CN.UTF-8"})
            self.assertEqual(wished.out, run(*command, "--ascii", "--lang", "en").out, command)
            self.assertTrue(wished.out.isascii(), command)
            self.assertIn("explanations are then in English", " ".join(run(command[0], "--help").out.split()))

    def test_texts_by_line(self):
        found = document("attend", "--file", "-", "--lines", "--layer", "0", stdin=b"one\n\ntwo words\n")
        self.assertEqual([one["text"] for one in found], ["one", "two words"])

    def test_a_text_among_many_says_what_it_says_alone(self):
        texts = [CAT, "hi", "A quiet river crosses the old library, and nobody looks.", CAT + " " + CAT]
        for command in (("heads",), ("attend",), ("attend", "--layer", "5", "--head", "11"), ("attend", "--words", "--from", "#1")):
            alone = [document(*command, text) for text in texts]
            self.assertEqual(document(*command, "--file", "-", "--lines", stdin="\n".join(texts).encode()), alone)

    def test_a_record_over_the_memory_limit_goes_to_a_file_and_shows_the_same(self):
        done = run("attend", CAT, "--json", "--memory-limit", "1")
        self.assertEqual(done.returncode, 2)
        needed = done.err.split("found ")[1].split(" bytes")[0]
        self.assertEqual(run("attend", CAT, "--json", "--memory-limit", needed).out, run("attend", CAT, "--json").out)

    def test_a_long_text_needs_memory_for_its_length_only(self):
        text = " ".join(f"w{i % 97}" for i in range(3000)).encode()
        with tempfile.TemporaryDirectory() as folder:
            done = run("record", "--file", "-", "--model", "toy d_model=32 heads=2", "--stages", "weights", "--output", folder + "/w.safetensors", "--memory-limit", "16M", "--json", stdin=text)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(json.loads(done.out)["bytes"], 2 * 3000 * 3000 * 4)

    def test_the_default_model_is_named_on_standard_error(self):
        self.assertIn("minilm", run("attend", "hi").err)
        self.assertEqual(run("attend", "hi", "--model", "minilm").err, "")
        self.assertEqual(run("attend", "\u4e00", "--layer", "0").err.count("minilm"), 1)  # minilm has a piece for this one
        self.assertIn("multilingual-e5-small", run("attend", "\u56fe\u4e66\u9986\u5728\u54ea\u91cc", "--model", "minilm").err)

    def test_threads_change_no_digit(self):
        self.assertEqual(run("attend", CAT, "--json", "--threads", "1").out, run("attend", CAT, "--json", "--threads", "3").out)


class Others(unittest.TestCase):
    def test_tokenize(self):
        found = document("tokenize", "Playing caf\u00e9s")
        check_schema("tokenize", found)
        text = "Playing caf\u00e9s".encode()
        for token in found["tokens"]:
            begin, end = token["offsets"]
            if not token["special"]:
                self.assertEqual(text[begin:end].decode(), token["text"])

    def test_heads(self):
        found = document("heads", CAT)
        check_schema("heads", found)
        self.assertEqual([(h["layer"], h["head"]) for h in found["heads"]], [(l, h) for l in range(6) for h in range(12)])
        self.assertEqual(len(document("heads", CAT, "--layer", "3")["heads"]), 12)
        alone = document("heads", "a", "--layer", "0")["heads"][0]
        self.assertEqual(alone["links"], [])

    def test_record_and_verify(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/trace.safetensors"
            done = run("record", CAT, "--stages", "all", "--output", path)
            self.assertEqual(done.returncode, 0, done.err)
            trace = Tensors(path)
            self.assertEqual(trace.header["layers.5.weights"]["shape"], [1, 12, 8, 8])
            self.assertEqual(trace.metadata["model"], "minilm")
            self.assertAlmostEqual(trace.value("layers.5.weights", [0, 11, 3, 2]), .89, delta=.005)
            report = document("verify", path)
            check_schema("verify", report)
            self.assertTrue(report["ok"])
            self.assertFalse(any(row["skipped"] for row in report["stages"]))
            data = bytearray(Path(path).read_bytes())
            entry = trace.header["layers.2.weights"]["data_offsets"][0]
            data[len(data) - len(trace.body) + entry + 2] ^= 0x40
            Path(path).write_bytes(data)
            broken = run("verify", path)
            self.assertEqual(broken.returncode, 1)
            self.assertIn("weights", broken.out)

    def test_record_some_heads_and_layers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/t.safetensors"
            done = run("record", CAT, "--stages", "weights,query", "--layers", "1,3-4", "--heads", "2,7", "--output", path)
            self.assertEqual(done.returncode, 0, done.err)
            trace = Tensors(path)
            self.assertEqual(sorted(trace.header), sorted(f"layers.{l}.{s}" for l in (1, 3, 4) for s in ("weights", "query")))
            self.assertEqual(trace.header["layers.3.weights"]["shape"], [1, 2, 8, 8])

    def test_verify_a_text_also_from_end_to_end(self):
        self.assertTrue(document("verify", CAT)["ok"])
        self.assertTrue(document("verify", CAT, "--end-to-end")["ok"])

    def test_every_number_of_the_lesson_stands_in_the_trace(self):
        for flags in (["--model", "minilm"], ["--model", "smollm2-135m-instruct"], ["--toy"], ["--toy", "--split", "input", "--d-model", "64", "--heads", "4", "--seed", "3"]):
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/t.safetensors"
                lesson = document("lesson", CAT, "--output", path, *flags)
                check_schema("lesson", lesson)
                trace = Tensors(path)
                quoted = [n for step in lesson["steps"] for n in step["numbers"]]
                placed = [n for n in quoted if "tensor" in n]
                self.assertGreater(len(placed), 60)
                for number in placed:
                    value = trace.value(number["tensor"], number["index"])
                    if value == -math.inf: value = None  # a score behind the mask, which JSON has no number for
                    self.assertEqual(number["value"], value, number)
                for number in quoted:
                    self.assertTrue("tensor" in number or number["rule"], number)

    def test_the_lesson_tells_every_step_in_both_languages(self):
        names = ["question", "tokens", "token_embedding", "position_embedding", "embedding", "roles", "query", "key", "value", "split",
                 "raw_scores", "scores", "weights", "head_output", "self_attention", "heads", "concat", "attention_output"]
        for language in ("en", "zh"):
            self.assertEqual([step["name"] for step in document("lesson", "--toy", "--lang", language)["steps"]], names)
        toy = document("lesson", "--toy", CAT)
        shapes = {step["name"]: step["shapes"] for step in toy["steps"]}
        self.assertEqual(shapes["query"], ["[6, 512] x [512, 512] -> [6, 512]"])
        self.assertEqual(shapes["split"], ["[6, 512] -> [6, 8, 64]"])

    def test_models_and_inspect(self):
        models = document("models")
        check_schema("models", models)
        self.assertIn("minilm", [m["name"] for m in models["models"]])
        found = document("inspect", "minilm")
        check_schema("inspect", found)
        self.assertEqual(found["architecture"]["num_heads"], 12)
        self.assertGreater(found["parameters"], 22_000_000)
        self.assertEqual(run("inspect", "minilm").returncode, 0)
        self.assertEqual(run("models").returncode, 0)

    def test_inspect_shows_a_gguf_file_that_cannot_be_run(self):
        small = str(ROOT / "fuzz" / "seeds" / "gguf" / "small.gguf")
        found = document("inspect", small)
        check_schema("inspect", found)
        self.assertIsNone(found["architecture"])
        self.assertTrue(found["warnings"][0].startswith("cannot be run: "), found["warnings"])
        self.assertEqual(found["metadata"], {
            "general.architecture": "llama", "llama.block_count": 1, "llama.context_length": 8, "llama.rope.freq_base": 10000.0,
            "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.scores": "an array of 3 f32",
            "tokenizer.ggml.token_type": "an array of 3 i32", "tokenizer.ggml.tokens": "an array of 3 string"})
        template = document("inspect", "smollm2-135m-instruct")["metadata"]["tokenizer.chat_template"]
        self.assertTrue(template.startswith("{%") and template.endswith("%}"), template)  # whole
        types = {tensor["name"]: tensor["dtype"] for tensor in found["tensors"]}
        self.assertEqual(types["token_embd.weight"], "F32")
        self.assertEqual(types["Q6_K"], "Q6_K")
        page = run("inspect", small, "--all").out
        self.assertIn("llama.block_count = 1", page)
        self.assertIn("Q4_1", page)
        self.assertIn("cannot be run", page)

    def test_every_json_obeys_its_schema(self):
        lines = ["--file", "-", "--lines"]
        head = ["--layer", "0", "--head", "0"]
        with tempfile.TemporaryDirectory() as folder:
            made = [("attend", CAT), ("attend", *lines), ("attend", CAT, "--from", "sat"), ("attend_head", CAT, *head), ("attend_head", *head, *lines),
                    ("heads", CAT), ("heads", *lines), ("tokenize", CAT), ("tokenize", *lines), ("lesson", "--toy"),
                    ("record", CAT, "--stages", "query", "--output", folder + "/t.safetensors"), ("verify", CAT),
                    ("generate", CAT, "--max-tokens", "2"), ("generate", CAT, "--max-tokens", "2", "--attend"), ("inspect", "minilm"),
                    ("inspect", "smollm2-135m-instruct"), ("models",), ("fetch", "minilm"), ("bench", "tokenizer", "--quick", "--model", "minilm")]
            for schema, *words in made:
                with self.subTest([schema, *words]):
                    found = document(schema.split("_")[0], *words, stdin=b"the cat\n\nthe mat\n")
                    check_schema(schema, found)
                    self.assertEqual(isinstance(found, list), "--lines" in words)
        covered = {schema for schema, *_ in made}
        self.assertEqual({path.name.split(".")[0] for path in (ROOT / "docs/schema").glob("*.json")}, covered)
        commands = re.findall(r"^  ([a-z]+) ", run("--help").out.split("ubcommands:")[1], re.MULTILINE)
        self.assertGreater(len(commands), 12)
        self.assertEqual({command for command in commands if "--json" in run(command, "--help").out} - covered, set())

    def test_help_version_completion_and_manual(self):
        self.assertIn("attend", run("--help").out)
        self.assertRegex(run("--version").out, r"clearhead \d+\.\d+\.\d+")
        for command in ("attend", "lesson", "heads", "tokenize", "record", "verify", "generate", "inspect", "models", "fetch", "bench", "op", "completion", "manual"):
            done = run(command, "--help")
            self.assertEqual((done.returncode, done.err), (0, ""))
        self.assertIn("over 0.5", run("heads", "--help").out)
        bash = run("completion", "bash").out
        self.assertEqual(subprocess.run(["bash", "-n"], input=bash.encode()).returncode, 0)
        self.assertIn("--hide-special", bash)
        for shell in ("zsh", "fish"):
            self.assertIn("attend", run("completion", shell).out)
        self.assertTrue(run("manual").out.startswith(".TH CLEARHEAD 1"))


if __name__ == "__main__":
    unittest.main()
