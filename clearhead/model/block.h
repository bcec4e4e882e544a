// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/capture/watch.h"
#include "clearhead/model/config.h"
#include "clearhead/model/parameters.h"
#include "clearhead/model/workspace.h"

namespace clearhead::model {

// What a block gets beside its parameters.
struct BlockContext {
  const ModelConfig& config;
  attention::RotaryTurns turns = {};                         // of this layer
  attention::KeyValueCache* past = nullptr;                  // of this layer; null: nothing stands before the texts
  attention::Precision kept = attention::Precision::single;  // what keys and values are rounded to
  linear::Compute compute = linear::Compute::single;         // of all products with parameters
};

// One block: tokens look at each other, then each is worked on by itself.
//
//   none      h = x + attention(x)                        output = h + feed_forward(h)
//   post      h = norm_1(x + attention(x))                output = norm_2(h + feed_forward(h))
//   pre       h = x + attention(norm_1(x))                output = h + feed_forward(norm_2(h))
//   around    h = x + norm_1'(attention(norm_1(x)))       output = h + norm_2'(feed_forward(norm_2(h)))
//   pre with parallel halves: as pre, but                 output = h + feed_forward(norm_2(x))
//
//   feed_forward(h) = activation(h W_1^T + b_1) W_2^T + b_2
//   gated:            (activation(h W_G^T) * h W_1^T) W_2^T
//
// Without a feed-forward half the output is h. Shows attention_input, the stages of multi_head_attention,
// attention_block_output, the stages of the feed-forward half and layer_output.
// Shapes: workspace.hidden [rows, d_model], the input and then the output; workspace.sequences are the texts in it.
// Source: Vaswani et al. 2017, section 3.1 (post); Radford et al. 2019, section 2.3 (pre); Gemma Team 2024 (around);
// Shazeer 2020 (gated).
void run_block(const BlockContext& context, const BlockParameters& parameters, size_t rows, Workspace& workspace,
               const capture::Watch& watch);

}  // namespace clearhead::model
