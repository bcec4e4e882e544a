// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>

#include "clearhead/capture/trace.h"

namespace clearhead::tests {

// A tensor that holds 0, 1, 2, ...
inline tensor::Tensor counting(tensor::Shape shape) {
  tensor::Tensor result(std::move(shape));
  float next = 0;
  for (float& value : result.as<float>()) value = next++;
  return result;
}

// "h\u00e9 you" as three tokens of a model of 3 layers with 4 heads; layers 0 and 2 and heads 1 and 2 were recorded.
inline capture::TraceInfo small_info() {
  capture::TraceInfo info;
  info.version = "0.0.1";
  info.model = "tiny";
  info.text = "h\u00e9 you";
  info.tokens = {{"[CLS]", "[CLS]", 101, 0, 0, true, false},
                 {"h\u00e9", "he", 7, 0, 3, false, false},
                 {"you", "##you", -1, 4, 7, false, true, 1}};
  info.attention = R"({"num_heads":4})";
  info.num_layers = 3;
  info.num_heads = 4;
  info.num_kv_heads = 2;
  info.layers = {0, 2};
  info.heads = {1, 2};
  return info;
}

// One tensor of each kind of shape.
inline capture::Trace small_trace(capture::TraceInfo info = small_info()) {
  capture::Trace trace(std::move(info));
  trace.add(capture::Stage::embedding, 0, counting({1, 3, 5}));
  trace.add(capture::Stage::query, 0, counting({1, 3, 2, 6}));
  trace.add(capture::Stage::key, 0, counting({1, 3, 2, 6}));
  trace.add(capture::Stage::weights, 2, counting({1, 2, 3, 3}));
  trace.add(capture::Stage::row_sum, 2, counting({1, 2, 3}));
  trace.add(capture::Stage::logits, 0, counting({1, 3, 11}));
  return trace;
}

}  // namespace clearhead::tests
