// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "clearhead/attention/float_room.h"
#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/attention/sequence.h"

namespace clearhead::model {

// What runs work in. Room is kept from run to run: one of no more tokens and texts than an earlier one allocates
// nothing. One run at a time. rows: the tokens of all texts of a run.
struct Workspace {
  std::vector<attention::Sequence> sequences;  // one a text
  std::vector<size_t> positions;               // [rows]: of each token, its row in the table of positions
  attention::FloatRoom table_rows;             // [threads, d_model]
  attention::FloatRoom hidden;                 // [rows, d_model]: input and output of a block
  attention::FloatRoom middle;                 // [rows, d_model]: what attention reads if normed; between the halves
  attention::FloatRoom wide;                   // [rows, d_ff], or of the rows that each thread works on; twice if gated
  attention::MultiHeadWorkspace attention;
};

}  // namespace clearhead::model
