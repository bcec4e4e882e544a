// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/block.h"

#include <algorithm>
#include <span>
#include <utility>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/base/parallel.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/norm.h"

namespace clearhead::model {
namespace {

using capture::Stage;

// One block of one run.
class BlockRun {
 public:
  BlockRun(const ModelConfig& config, const BlockParameters& parameters, size_t rows, Workspace& workspace,
           const capture::Watch& watch)
      : config_(config), parameters_(parameters), rows_(rows), workspace_(workspace), watch_(watch) {}

  void run() {
    const std::span<float> hidden = of_width(workspace_.hidden), middle = of_width(workspace_.middle);
    const std::span<const float> heads = attend(half_input(parameters_.attention_norm, hidden));
    if (takes_rows()) {
      run_by_rows(heads, middle, hidden);
    } else {
      run_by_steps(heads, middle, hidden);
    }
    if (config_.d_ff == 0) std::swap(workspace_.hidden, workspace_.middle);
  }

 private:
  // Rows that one thread takes from attention to the block's output: enough that parameters are read from memory
  // seldom, few enough that all threads have work.
  static constexpr size_t kLeastRows = 64, kMostRows = 128;

  std::span<float> of_width(attention::FloatRoom& room) const { return room.span(rows_ * config_.d_model); }

  void show(Stage stage, std::span<const float> values) const {
    watch_.show(stage, {1, rows_, config_.d_model}, values);
  }

  // Behind attention rows do not meet: where there are enough of them for all threads and nobody wants to see what
  // stands between, a thread takes its rows all the way, and they stay in its cache. No bit depends on it.
  bool takes_rows() const {
    constexpr Stage kBetween[] = {Stage::attention_output, Stage::attention_block_output, Stage::feed_forward_input,
                                  Stage::feed_forward_hidden, Stage::feed_forward_output};
    const auto wanted = [&](Stage stage) { return watch_.wants(stage); };
    return rows_ >= kLeastRows * base::num_threads() && std::ranges::none_of(kBetween, wanted);
  }

  void run_by_steps(std::span<const float> heads, std::span<float> middle, std::span<float> hidden) const {
    linear::linear(heads, rows_, parameters_.attention.output, middle);
    show(Stage::attention_output, middle);
    finish_half(parameters_.attention_norm, hidden, middle);
    show(Stage::attention_block_output, middle);
    if (config_.d_ff == 0) return show(Stage::layer_output, middle);
    const std::span<const float> input = half_input(parameters_.feed_forward_norm, middle);
    show(Stage::feed_forward_input, input);
    const std::span<float> wide = workspace_.wide.span(rows_ * config_.d_ff);
    feed_forward(input, rows_, wide, hidden);
    watch_.show(Stage::feed_forward_hidden, {1, rows_, config_.d_ff}, wide);
    show(Stage::feed_forward_output, hidden);
    finish_half(parameters_.feed_forward_norm, middle, hidden);
    show(Stage::layer_output, hidden);
  }

  void run_by_rows(std::span<const float> heads, std::span<float> middle, std::span<float> hidden) const {
    const size_t threads = base::num_threads(), width = heads.size() / rows_, d_model = config_.d_model;
    const size_t rounds = (rows_ + threads * kMostRows - 1) / (threads * kMostRows), blocks = rounds * threads;
    const size_t most = (rows_ + blocks - 1) / blocks;  // rows of a block
    const std::span<float> wide = workspace_.wide.span(threads * most * config_.d_ff);
    base::parallel_for(blocks, [&](size_t block) {
      const size_t first = rows_ * block / blocks, rows = rows_ * (block + 1) / blocks - first;
      const std::span<float> x = hidden.subspan(first * d_model, rows * d_model);
      const std::span<float> h = middle.subspan(first * d_model, rows * d_model);
      linear::linear(heads.subspan(first * width, rows * width), rows, parameters_.attention.output, h);
      finish_half(parameters_.attention_norm, x, h);
      if (config_.d_ff == 0) return;
      const std::span<float> own = wide.subspan(base::thread_index() * most * config_.d_ff, rows * config_.d_ff);
      // x has been read; a pre-norm block has room there for what its second half reads.
      const bool pre = config_.norm_placement == NormPlacement::pre;
      if (pre) norm_rows(parameters_.feed_forward_norm, config_.norm_epsilon, h, x);
      feed_forward(pre ? x : h, rows, own, x);
      finish_half(parameters_.feed_forward_norm, h, x);
    });
    show(Stage::layer_output, config_.d_ff == 0 ? middle : hidden);
  }

  // What a half of the block reads: its input, in a pre-norm block normed.
  std::span<const float> half_input(const NormParameters& norm, std::span<const float> input) const {
    if (config_.norm_placement != NormPlacement::pre) return input;
    const std::span<float> normed = of_width(workspace_.normed);
    norm_rows(norm, config_.norm_epsilon, input, normed);
    return normed;
  }

  // What a half of the block hands on: output += input, in a post-norm block normed.
  void finish_half(const NormParameters& norm, std::span<const float> input, std::span<float> output) const {
    if (config_.norm_placement == NormPlacement::post) {
      return add_norm_rows(norm, config_.norm_epsilon, output, input, output);
    }
    add_rows(input, output);
  }

  // What all heads gather.
  std::span<const float> attend(std::span<const float> input) const {
    show(Stage::attention_input, input);
    const attention::MultiHeadInput same{.batch = 1,
                                         .query_len = rows_,
                                         .key_len = rows_,
                                         .query = input,
                                         .key = input,
                                         .value = input,
                                         .mask = {},
                                         .sequences = workspace_.sequences};
    return attention::attend_with_heads(config_.attention, parameters_.attention, same, workspace_.attention, watch_);
  }

  // Shapes: input, output [rows, d_model], which may be the same; wide [rows, d_ff].
  void feed_forward(std::span<const float> input, size_t rows, std::span<float> wide, std::span<float> output) const {
    linear::linear(input, rows, parameters_.feed_forward_in, wide,
                   {.activation = config_.activation, .residual = nullptr});
    linear::linear(wide, rows, parameters_.feed_forward_out, output);
  }

  const ModelConfig& config_;
  const BlockParameters& parameters_;
  size_t rows_;
  Workspace& workspace_;
  const capture::Watch& watch_;
};

}  // namespace

void run_block(const ModelConfig& config, const BlockParameters& parameters, size_t rows, Workspace& workspace,
               const capture::Watch& watch) {
  BlockRun(config, parameters, rows, workspace, watch).run();
}

}  // namespace clearhead::model
