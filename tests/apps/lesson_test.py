#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lesson on a decoder that people use, as it is seen. After a wanted change, write the screens anew and look at them:

    CLEARHEAD=build/bin/clearhead CLEARHEAD_WRITE_SCREENS=1 tests/apps/lesson_test.py
"""
import os, unittest
from pathlib import Path
from program import CAT, document, run

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


if __name__ == "__main__":
    unittest.main()
