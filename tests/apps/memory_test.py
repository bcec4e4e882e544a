#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a command states that it needs is what it needs: peaks of real runs beside the estimates."""
import json, os, subprocess, tempfile, unittest

from program import PROGRAM, run

TOY = ("--model", "toy d_model=256 heads=8")
THREAD = ("--threads", "1")  # each thread has memory of its own from the system


def words(count):
    return " ".join(f"w{i % 97}" for i in range(count)).encode()


def peak(*command, text):
    """Bytes that the program had in memory at most; what it writes goes nowhere."""
    with tempfile.TemporaryFile() as source:
        source.write(text)
        source.seek(0)
        child = subprocess.Popen([PROGRAM, *command], stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
    assert child.returncode == 0, error
    return usage.ru_maxrss * 1024


class Memory(unittest.TestCase):
    def test_verify_states_what_it_needs_and_is_refused_over_the_limit(self):
        for flags in ((), ("--end-to-end",)):
            command = ("verify", "--file", "-", *TOY, *THREAD, *flags)
            refused = run(*command, "--memory-limit", "1", stdin=words(700))
            self.assertEqual(refused.returncode, 2, refused.err)
            stated = int(refused.err.split("found ")[1].split(" bytes")[0])
            self.assertEqual(run(*command, "--memory-limit", str(stated - 1), stdin=words(700)).returncode, 2)
            # What the program is without any text, and the record, which is in a file then, are no part of it.
            needed = peak(*command, "--memory-limit", str(stated), text=words(700)) - peak(*command, text=words(1))
            self.assertLess(needed, 2 * stated)
            self.assertGreater(needed, stated / 4)

    def test_verify_of_a_trace_is_refused_over_the_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/t.safetensors"
            done = run("record", "--file", "-", *TOY, "--stages", "query,key,kernel_scores", "--output", path, stdin=words(50))
            self.assertEqual(done.returncode, 0, done.err)
            refused = run("verify", path, "--memory-limit", "1M")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("[memory] expected a run that keeps at most 1048576 bytes; found ", refused.err)
            self.assertEqual(run("verify", path, "--memory-limit", "1G").returncode, 0)

    def test_the_json_of_a_head_is_written_row_by_row(self):
        command = ("attend", "--layer", "0", "--head", "0", "--json", "--file", "-", *TOY, *THREAD)
        more = peak(*command, text=words(4000)) - peak(*command, text=words(1))
        self.assertLess(more, 4000 * 4000 * 4)  # the weights alone as floats; as text they are three times that

    def test_writing_needs_what_inspect_states(self):
        program = 40e6  # the program itself, its tokenizer, and pages of the file that nobody gave back yet
        text = b"The cat sat on the mat and looked at us. " * 60
        stated = json.loads(run("inspect", "smollm2-135m-instruct", "--tokens", "700", "--json").out)["writing"]
        for cache, name in (("float", "bytes"), ("bf16", "bytes_with_bf16_cache")):
            needed = peak("generate", "--file", "-", "--max-tokens", "1", "--cache", cache, text=text)
            self.assertLess(needed, stated[name] + program)
        self.assertLess(stated["bytes_with_bf16_cache"], stated["bytes"])


if __name__ == "__main__":
    unittest.main()
