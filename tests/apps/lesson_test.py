#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lesson on a decoder that people use, as it is seen. After a wanted change, write the screens anew and look at them:

    CLEARHEAD=build/bin/clearhead CLEARHEAD_WRITE_SCREENS=1 tests/apps/lesson_test.py
"""
import math, os, tempfile, unittest
from pathlib import Path
from program import CAT, document, run, small_decoder

SCREENS = Path(__file__).resolve().parent / "data"
MODEL = ["--model", "smollm2-135m-instruct", "--layer", "9", "--head", "4"]
TOLD = ["shared_heads", "rotated_query", "rotated_key", "causal_mask"]


class LessonOfADecoder(unittest.TestCase):
    def expect_screen(self, name, *flags):
        page = run("lesson", CAT, *MODEL, "--from", "on", *flags, env={"COLUMNS": "96"})
        self.assertEqual(page.returncode, 0, page.err)
        path = SCREENS / name
        if os.environ.get("CLEARHEAD_WRITE_SCREENS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(page.out, encoding="utf-8")
        self.assertEqual(page.out, path.read_text(encoding="utf-8"))

    def test_the_whole_lesson(self):
        self.expect_screen("lesson_decoder.ascii.txt", "--ascii")

    def test_what_a_decoder_adds_in_chinese(self):
        for step in TOLD:
            self.expect_screen(f"lesson_decoder.{step}.zh.txt", "--lang", "zh", "--step", step)

    def test_steps_stand_in_their_order(self):
        names = [step["name"] for step in document("lesson", CAT, *MODEL)["steps"]]
        self.assertEqual(names, ["question", "tokens", "token_embedding", "embedding", "attention_input", "roles", "query", "key", "value",
                                 "split", *TOLD[:3], "raw_scores", "scores", TOLD[3], "weights", "head_output", "self_attention", "heads",
                                 "concat", "attention_output"])

    def test_the_first_token_sees_itself_alone(self):
        steps = {step["name"]: step for step in document("lesson", CAT, *MODEL, "--from", "#0")["steps"]}
        visible = [number["value"] for number in steps["causal_mask"]["numbers"] if number["label"] == "visible"]
        self.assertEqual(visible, [1])
        weights = [number["value"] for number in steps["weights"]["numbers"] if number.get("stage") == "weights"]
        self.assertEqual(weights, [1] + [0] * 5)
        self.assertIn("it may see no other token, so all of its attention, 1, goes to itself", steps["question"]["plain"])
        self.assertIn("it may see no other word", steps["heads"]["plain"])


class LessonOfFewTokens(unittest.TestCase):
    def told(self, *command):
        lesson = document("lesson", *command)
        return lesson, {step["name"]: step["plain"] for step in lesson["steps"]}

    def weight_told(self, lesson):
        return [number["value"] for number in lesson["steps"][0]["numbers"] if number["label"] == "p"][0]

    def test_a_single_word_looks_at_what_it_looks_at_most(self):
        lesson, steps = self.told("a", "--model", "minilm")
        self.assertEqual([lesson["tokens"][lesson[role]]["text"] for role in ("query", "key")], ["a", "[CLS]"])
        self.assertGreater(self.weight_told(lesson), 0.5)
        self.assertIn("it gives 1 of its attention to \"[CLS]\"", steps["question"])
        self.assertIn("it may see no other word", steps["heads"])

    def test_a_single_token_sees_itself(self):
        for flags in (["--toy"], ["--model", "smollm2-135m-instruct"]):
            lesson, steps = self.told("a", *flags)
            self.assertEqual((lesson["query"], lesson["key"], self.weight_told(lesson)), (0, 0, 1))
            self.assertIn("all of its attention, 1, goes to itself", steps["question"])
            self.assertIn("The model reads 1 token, not letters", steps["tokens"])
            self.assertIn("A single score becomes 1, divided or not.", steps["scores"])
            self.assertIn("its weight is 1", steps["head_output"])
        self.assertIn("\u5168\u90e8\u6ce8\u610f\u529b\uff081\uff09", self.told("a", "--toy", "--lang", "zh")[1]["question"])

    def test_a_share_of_nothing_is_no_answer(self):
        for command in (("hi cat", "--from", "hi"), ("hi cat", "--from", "[CLS]"), ("hi cat", "--from", "cat"), ("hi cat",), ("a b", "--layer", "0", "--head", "2"),
                        ("hi cat", "--model", "smollm2-135m-instruct")):
            self.assertGreater(self.weight_told(self.told(*command)[0]), 0.01, command)


class LessonOfCapsAndWindows(unittest.TestCase):
    """Small models that read characters."""

    def steps(self, name, *flags):
        with tempfile.TemporaryDirectory() as folder:
            lesson = document("lesson", "the cat sat", "--model", small_decoder(folder, name), "--from", "#10", *flags)
        return {step["name"]: step for step in lesson["steps"]}

    def values(self, step, symbol):
        return [number["value"] for number in step["numbers"] if number["label"].startswith(symbol + "[")]

    def test_a_window_hides_what_is_far_back(self):
        for name, layer, seen in (("mistral", "0", 5), ("gemma2", "0", 4)):
            mask = self.steps(name, "--layer", layer)["causal_mask"]
            self.assertEqual(mask["title"], "The mask: nobody looks ahead, nor far back")
            self.assertIn(f"a token sees at most {seen} of those before it", mask["plain"])
            self.assertEqual([number["value"] for number in mask["numbers"] if number["label"] == "visible"], [seen + 1])
        whole = self.steps("gemma2", "--layer", "1")["causal_mask"]  # a layer that sees all
        self.assertEqual(whole["title"], "The mask: nobody looks ahead")
        self.assertIn("\u524d\u9762\u7684 5 \u4e2a", self.steps("mistral", "--layer", "0", "--lang", "zh")["causal_mask"]["plain"])

    def test_a_soft_cap_is_told_and_shown(self):
        for language, rule in (("en", "below 3 by 3 tanh(s / 3)"), ("zh", "3 tanh(s / 3)")):
            steps = self.steps("gemma2", "--layer", "1", "--lang", language)
            scores = steps["scores"]
            self.assertIn(rule, scores["plain"])
            self.assertIn("3 tanh(", scores["shapes"][0])
            raw = self.values(steps["raw_scores"], "q.k")
            for shown, score in zip(self.values(scores, "s"), raw, strict=True):
                self.assertAlmostEqual(shown, 3 * math.tanh(score / math.sqrt(10) / 3), delta=1e-5)
            powers = [math.exp(3 * math.tanh(score / 3)) for score in raw]
            unscaled = [number["value"] for number in scores["numbers"] if number["label"] == "unscaled p"][0]
            self.assertTrue(any(abs(unscaled - power / sum(powers)) < 1e-5 for power in powers), unscaled)
        self.assertNotIn("tanh", self.steps("mistral")["scores"]["plain"])


if __name__ == "__main__":
    unittest.main()
