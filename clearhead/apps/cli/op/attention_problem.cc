// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using tensor::DType;

constexpr std::string_view kWhere = "op attention";

// The first opset whose mask may be shorter than the keys and that knows lengths, and the first that refuses head
// counts beside 4D inputs.
constexpr int64_t kLengthOpset = 24, kStrictOpset = 25;

// A tensor [batch, heads, len, dim] or [batch, len, heads * dim] with its axes told apart.
struct HeadTensor {
  tensor::TensorView view;
  size_t batch, heads, len, dim;
};

HeadTensor read_heads(Inputs& inputs, const std::string& name, const std::optional<size_t>& heads,
                      const AttentionSettings& settings) {
  const tensor::TensorView view = inputs.required_floating(name);
  const tensor::Shape& shape = view.shape();
  const std::string_view attribute = name == "Q" ? "q_num_heads" : "kv_num_heads";
  if (shape.rank() == 3) {
    if (!heads) base::refuse(kWhere, fmt::format("attribute {} beside 3D inputs", attribute), "none");
    if (shape[2] % *heads != 0) {
      inputs.refuse_shape(name, view, fmt::format("[batch, len, a multiple of {} = {}]", attribute, *heads));
    }
    return {view, shape[0], *heads, shape[1], shape[2] / *heads};
  }
  if (shape.rank() != 4) inputs.refuse_shape(name, view, "[batch, heads, len, dim] or [batch, len, heads * dim]");
  if (heads && settings.opset >= kStrictOpset) {
    base::refuse(kWhere, "no head counts beside 4D inputs, which have them", fmt::format("attribute {}", attribute));
  }
  if (heads && *heads != shape[1]) {
    inputs.refuse_shape(name, view, fmt::format("[batch, {} = {}, len, dim]", attribute, *heads));
  }
  return {view, shape[0], shape[1], shape[2], shape[3]};
}

// As a run in that precision reads it: in float, narrow types stay as they are.
tensor::Tensor as_read(const tensor::TensorView& view, DType real) {
  const bool narrow = view.dtype() == DType::f16 || view.dtype() == DType::bf16;
  return real == DType::f32 && narrow ? tensor::clone(view) : to_real(view, real);
}

// In the order of the computation: [batch, len, heads, dim].
tensor::Tensor by_position(const HeadTensor& heads, DType real) {
  tensor::Tensor values = as_read(heads.view, real);
  if (heads.view.shape().rank() == 3)
    return std::move(values).reshaped({heads.batch, heads.len, heads.heads, heads.dim});
  return swap_middle_axes(values);
}

// The mask with four axes; a shorter key axis is filled up with what may not be seen, where the opset says so.
tensor::Tensor read_mask(Inputs& inputs, const tensor::TensorView& view, std::array<size_t, 4> full, int64_t opset) {
  if (view.dtype() != DType::bool_ && !tensor::is_floating(view.dtype())) {
    base::refuse(kWhere, "attn_mask of type BOOL, F32, F16, BF16 or F64", std::string(tensor::name_of(view.dtype())));
  }
  const size_t rank = view.shape().rank();
  const tensor::Shape whole{full[0], full[1], full[2], full[3]};
  const bool pads = opset >= kLengthOpset && rank > 0 && view.shape()[rank - 1] < full[3];
  std::array<size_t, 4> sizes = {1, 1, 1, 1};
  bool fits = rank <= 4;
  for (size_t axis = 4 - std::min<size_t>(rank, 4); fits && axis < 4; ++axis) {
    sizes[axis] = view.shape()[axis + rank - 4];
    fits = sizes[axis] == full[axis] || sizes[axis] == 1 || (axis == 3 && pads);
  }
  if (!fits) inputs.refuse_shape("attn_mask", view, fmt::format("that broadcasts to {}", whole.text()));
  if (!pads) return tensor::clone(view).reshaped({sizes[0], sizes[1], sizes[2], sizes[3]});
  const bool boolean = view.dtype() == DType::bool_;
  const tensor::Tensor source = tensor::to_dtype(view, boolean ? DType::bool_ : DType::f64);
  const size_t rows = sizes[0] * sizes[1] * sizes[2], given = sizes[3];
  tensor::Tensor padded(source.dtype(), {sizes[0], sizes[1], sizes[2], full[3]});
  for (size_t row = 0; row < rows; ++row) {
    for (size_t key = 0; key < full[3]; ++key) {
      if (boolean) {
        padded.as<bool>()[row * full[3] + key] = key < given && source.as<bool>()[row * given + key];
      } else {
        padded.as<double>()[row * full[3] + key] =
            key < given ? source.as<double>()[row * given + key] : -std::numeric_limits<double>::infinity();
      }
    }
  }
  return padded;
}

attention::AttentionConfig configure(const AttentionSettings& settings, const HeadTensor& query, const HeadTensor& key,
                                     const HeadTensor& value, Inputs& inputs) {
  const size_t rank = query.view.shape().rank();
  if (key.view.shape().rank() != rank) inputs.refuse_shape("K", key.view, fmt::format("{} axes, as Q has", rank));
  if (value.view.shape().rank() != rank) inputs.refuse_shape("V", value.view, fmt::format("{} axes, as Q has", rank));
  if (key.batch != query.batch || key.dim != query.dim) {
    inputs.refuse_shape("K", key.view, fmt::format("batch {} and head size {}, as Q has", query.batch, query.dim));
  }
  if (value.batch != query.batch || value.heads != key.heads || value.len != key.len) {
    inputs.refuse_shape("V", value.view,
                        fmt::format("batch {}, {} heads and length {}, as K has", query.batch, key.heads, key.len));
  }
  attention::AttentionConfig config;
  config.num_heads = query.heads;
  config.num_kv_heads = key.heads;
  config.head_dim = query.dim;
  config.value_dim = value.dim;
  config.scale = settings.scale;
  config.causal = settings.causal ? attention::Causal::offset : attention::Causal::none;
  config.left_window = settings.left_window;
  config.right_window = settings.right_window;
  config.soft_cap = settings.soft_cap;
  config.precision = settings.precision;
  config.check();
  return config;
}

// The past before what is new; as floats if one type does not hold both.
tensor::Tensor join_past(const tensor::TensorView& past, tensor::Tensor values, DType real) {
  const bool same = past.dtype() == values.dtype();
  const tensor::Tensor before = swap_middle_axes(same ? tensor::clone(past) : to_real(past, real));
  return join_positions(before, same ? std::move(values) : to_real(values, real));
}

// Keys and values of the past stand before the new ones; queries stand behind them.
void prepend_past(Inputs& inputs, const HeadTensor& key, const HeadTensor& value, DType real,
                  AttentionProblem& problem) {
  const auto past_key = inputs.find_floating("past_key"), past_value = inputs.find_floating("past_value");
  if (past_key.has_value() != past_value.has_value()) {
    base::refuse(kWhere, "past_key and past_value together",
                 fmt::format("only {}", past_key ? "past_key" : "past_value"));
  }
  problem.cached = past_key.has_value();
  if (!problem.cached) return;
  if (past_key->shape().rank() != 4) inputs.refuse_shape("past_key", *past_key, "[batch, heads, len, dim]");
  const size_t len = past_key->shape()[2];
  inputs.check_shape("past_key", *past_key, {key.batch, key.heads, len, key.dim}, "[batch, kv heads, past, dim]");
  inputs.check_shape("past_value", *past_value, {value.batch, value.heads, len, value.dim},
                     "[batch, kv heads, past, value dim]");
  problem.key = join_past(*past_key, std::move(problem.key), real);
  problem.value = join_past(*past_value, std::move(problem.value), real);
  problem.key_len += len;
  problem.config.key_offset = static_cast<int64_t>(len);
}

// A cache that is kept outside: the last query of each sequence stands at its last valid key.
void read_lengths(Inputs& inputs, int64_t opset, AttentionProblem& problem) {
  const auto lengths = inputs.find_counts("nonpad_kv_seqlen", problem.batch);
  if (!lengths) return;
  if (opset < kLengthOpset) {
    base::refuse(kWhere, fmt::format("nonpad_kv_seqlen from opset {} on", kLengthOpset),
                 fmt::format("opset {}", opset));
  }
  if (problem.cached) base::refuse(kWhere, "nonpad_kv_seqlen or past_key and past_value", "both");
  for (size_t row = 0; row < problem.batch; ++row) {
    const int64_t length = (*lengths)[row];
    if (length < 0 || static_cast<uint64_t>(length) > problem.key_len) {
      base::refuse(kWhere, fmt::format("nonpad_kv_seqlen from 0 to {}, the length of K", problem.key_len),
                   fmt::format("{} in row {}", length, row));
    }
    const auto keys = static_cast<size_t>(length);
    problem.sequences.push_back({row, 0, problem.query_len, 0, keys, attention::bottom_right(problem.query_len, keys)});
  }
}

}  // namespace

attention::AttentionInput float_input(const AttentionProblem& problem) {
  return {problem.batch,      problem.query_len,    problem.key_len, problem.query.view(),
          problem.key.view(), problem.value.view(), problem.mask,    problem.sequences};
}

AttentionProblem read_attention_problem(Inputs& inputs, const AttentionSettings& settings) {
  const HeadTensor query = read_heads(inputs, "Q", settings.num_heads, settings);
  const HeadTensor key = read_heads(inputs, "K", settings.num_kv_heads, settings);
  const HeadTensor value = read_heads(inputs, "V", settings.num_kv_heads, settings);
  const DType first = query.view.dtype(), real = settings.in_double ? DType::f64 : real_of(first);
  if (real == DType::f64 && settings.precision != attention::Precision::single) {
    base::refuse(kWhere, "attribute precision of float beside F64 or softmax_precision 11 (double)", "bfloat16");
  }
  AttentionProblem problem;
  problem.config = configure(settings, query, key, value, inputs);
  problem.batch = query.batch;
  problem.query_len = query.len;
  problem.key_len = key.len;
  problem.query = by_position(query, real);
  problem.key = by_position(key, real);
  problem.value = by_position(value, real);
  problem.first = first;
  problem.flat = query.view.shape().rank() == 3;
  prepend_past(inputs, key, value, real, problem);
  read_lengths(inputs, settings.opset, problem);
  if (const auto mask = inputs.find("attn_mask")) {
    const std::array<size_t, 4> full = {problem.batch, query.heads, problem.query_len, problem.key_len};
    problem.mask_values = read_mask(inputs, *mask, full, settings.opset);
    problem.mask = attention::Mask(problem.mask_values, full);
  }
  problem.key_groups = read_key_groups(inputs, problem.key_len);
  inputs.check_all_known();
  return problem;
}

}  // namespace clearhead::apps
