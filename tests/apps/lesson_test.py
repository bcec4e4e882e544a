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


if __name__ == "__main__":
    unittest.main()
