// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace clearhead::apps {

// Takes commands from standard input, a JSON object a line, and answers each with one, so that another program can
// measure its own work and ours in turns:
//
//   {"prepare": "attention", "shape": S, "inputs": F, "outputs": F}   query, key, value -> head_output; checked;
//                                                                     "precision": "bf16" for such products
//   {"prepare": "encoder", "model": M, "inputs": F, "outputs": F}     ids -> hidden
//   {"prepare": "peak"}
//   {"run": EVIDENCE, "seconds": S}      {"seconds"}: of one run, the middle of as many as take S; or the peaks
//   {"memory": EVIDENCE}                 {"bytes"}: AttentionRun::working_bytes
//
// "threads": N beside any of them sets the number of threads from there on. Ends with its input. Throws: Error for a
// line that is none of these.
void take_bench_turns();

}  // namespace clearhead::apps
