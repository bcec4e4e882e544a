// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/projection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "clearhead/attention/sizes.h"
#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/rms_norm.h"
#include "clearhead/kernels/rotary.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

using capture::Stage;

// Sequences of vectors and the map they go through.
struct Role {
  std::string_view name;
  std::span<const float> input;  // [batch, len, in]
  size_t batch, len, heads, dim;
  const linear::PackedLinear& parameters;
  FloatRoom& room;

  size_t rows() const { return batch * len; }
  size_t width() const { return heads * dim; }
  std::span<float> output() const { return room.span(rows() * width()); }

  void check() const {
    if (parameters.out_features() != width()) {
      base::refuse("attention", fmt::format("a projection of {} to {} heads of {}", name, heads, dim),
                   fmt::format("{} outputs", parameters.out_features()));
    }
    check_size(name, {batch, len, parameters.in_features()}, input.size());
  }
};

bool same(std::span<const float> a, std::span<const float> b) { return a.data() == b.data() && a.size() == b.size(); }

// Each sequence of a role followed by the appended rows. Shapes: appended [extra, heads * dim].
std::span<const float> append(const Role& role, const tensor::Tensor& appended, std::string_view name,
                              FloatRoom& room) {
  const size_t width = role.width(), extra = appended.elements() / width, len = role.len + extra;
  if (extra == 0) return role.output();
  check_size(name, {extra, width}, appended.elements());
  const std::span<const float> from = role.output(), added = appended.as<float>();
  const std::span<float> all = room.span(role.batch * len * width);
  float* to = all.data();
  for (size_t batch = 0; batch < role.batch; ++batch) {
    to = std::copy_n(from.data() + batch * role.len * width, role.len * width, to);
    to = std::copy_n(added.data(), added.size(), to);
  }
  return all;
}

// An RMS norm of every head of a role. Shapes: gain [dim], or none.
void norm_heads(const Role& role, const tensor::Tensor& gain, float epsilon) {
  if (gain.elements() == 0) return;
  check_size("gain of each head", {role.dim}, gain.elements());
  const std::span<float> all = role.output();
  base::parallel_for(role.rows(), [&](size_t row) {
    for (size_t head = 0; head < role.heads; ++head) {
      const std::span<float> one = all.subspan((row * role.heads + head) * role.dim, role.dim);
      kernels::rms_norm(one, gain.as<float>(), epsilon, one);
    }
  });
}

// Turns every head of row i by turn i.
void turn_heads(const Role& role, const RotaryTurns& turns) {
  const std::span<float> all = role.output();
  base::parallel_for(role.rows(), [&](size_t row) {
    const auto cosines = turns.cosines.subspan(row * turns.pairs, turns.pairs);
    const auto sines = turns.sines.subspan(row * turns.pairs, turns.pairs);
    for (size_t head = 0; head < role.heads; ++head) {
      kernels::rotate(all.subspan((row * role.heads + head) * role.dim, role.dim), cosines, sines, turns.layout);
    }
  });
}

// Rounds keys or values to what they are kept in.
void round_kept(const MultiHeadInput& input, const Role& role) {
  if (input.kept == Precision::single) return;
  const RoundingError error = round_to_bfloat16(role.output());
  if (input.past != nullptr) input.past->add_error(error);
}

void check_turns(const AttentionConfig& config, const MultiHeadParameters& parameters, const MultiHeadInput& input) {
  const RotaryTurns& turns = input.turns;
  check_size("cosines", {input.query_len, turns.pairs}, turns.cosines.size());
  check_size("sines", {input.query_len, turns.pairs}, turns.sines.size());
  if (2 * turns.pairs > config.head_dim) {
    base::refuse("attention", fmt::format("at most {} pairs to turn", config.head_dim / 2),
                 fmt::format("{}", turns.pairs));
  }
  if (input.batch != 1 || input.query_len != input.key_len || parameters.appended_key.elements() != 0) {
    base::refuse("attention", "turns for one batch that attends to itself", "other inputs");
  }
}

}  // namespace

Projected project_inputs(const AttentionConfig& config, const MultiHeadParameters& parameters,
                         const MultiHeadInput& input, MultiHeadWorkspace& workspace, const capture::Watch& watch) {
  const size_t batch = input.batch;
  const std::array<Role, 3> roles = {{
      {"query", input.query, batch, input.query_len, config.num_heads, config.head_dim, parameters.query,
       workspace.query},
      {"key", input.key, batch, input.key_len, config.num_kv_heads, config.head_dim, parameters.key, workspace.key},
      {"value", input.value, batch, input.key_len, config.num_kv_heads, config.value_dim, parameters.value,
       workspace.value},
  }};
  for (const Role& role : roles) role.check();
  std::array<linear::LinearPart, 3> parts;
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = {&roles[i].parameters, roles[i].output()};
  if (same(input.query, input.key) && same(input.key, input.value)) {
    linear::linear(input.query, roles[0].rows(), parts, input.compute);
  } else {
    for (size_t i = 0; i < parts.size(); ++i)
      linear::linear(roles[i].input, roles[i].rows(), {&parts[i], 1}, input.compute);
  }
  const size_t extra = parameters.appended_key.elements() / roles[1].width();
  if (extra != 0 && !(input.sequences.empty() && input.kept == Precision::single)) {
    base::refuse("attention", "sequences, rounded keys or appended keys", "two of them");
  }
  const bool turned = input.turns.pairs != 0;
  round_kept(input, roles[2]);
  if (!turned) round_kept(input, roles[1]);
  const Projected projected{input.key_len + extra, roles[0].output(),
                            append(roles[1], parameters.appended_key, "appended_key", workspace.all_keys),
                            append(roles[2], parameters.appended_value, "appended_value", workspace.all_values)};
  watch.show(Stage::query, {batch, input.query_len, config.num_heads, config.head_dim}, projected.query);
  watch.show(Stage::key, {batch, projected.key_len, config.num_kv_heads, config.head_dim}, projected.key);
  watch.show(Stage::value, {batch, projected.key_len, config.num_kv_heads, config.value_dim}, projected.value);
  if (!turned) return projected;
  check_turns(config, parameters, input);
  norm_heads(roles[0], parameters.query_gain, parameters.head_norm_epsilon);
  norm_heads(roles[1], parameters.key_gain, parameters.head_norm_epsilon);
  turn_heads(roles[0], input.turns);
  turn_heads(roles[1], input.turns);
  round_kept(input, roles[1]);
  watch.show(Stage::rotated_query, {batch, input.query_len, config.num_heads, config.head_dim}, projected.query);
  watch.show(Stage::rotated_key, {batch, projected.key_len, config.num_kv_heads, config.head_dim}, projected.key);
  return projected;
}

void head_contributions(std::span<const float> head_output, size_t heads, const linear::PackedLinear& output,
                        std::span<float> contributions) {
  constexpr size_t kRows = 48;  // that are worked on together
  const size_t value_dim = output.in_features() / heads, rows = head_output.size() / (heads * value_dim);
  const size_t d_model = output.out_features();
  const size_t width = kernels::panel_count(d_model) * kernels::kPanelWidth, blocks = (rows + kRows - 1) / kRows;
  std::vector<float> room;
  const std::span<const float> panels = output.panels_as_floats(room);
  std::vector<std::vector<float>> scratch(base::num_threads(), std::vector<float>(kRows * width));
  base::parallel_for(blocks * heads, [&](size_t unit) {
    const size_t head = unit % heads, first = unit / heads * kRows, count = std::min(kRows, rows - first);
    float* block = scratch[base::thread_index()].data();
    kernels::tile_product({.left = head_output.data() + (first * heads + head) * value_dim,
                           .left_stride = heads * value_dim,
                           .panels = panels.data() + head * value_dim * kernels::kPanelWidth,
                           .panel_stride = heads * value_dim * kernels::kPanelWidth,
                           .output = block,
                           .output_stride = width,
                           .rows = count,
                           .depth = value_dim,
                           .num_panels = width / kernels::kPanelWidth});
    for (size_t row = 0; row < count; ++row) {
      std::copy_n(block + row * width, d_model, contributions.data() + ((first + row) * heads + head) * d_model);
    }
  });
}

}  // namespace clearhead::attention
