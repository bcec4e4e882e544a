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
  BlockRun(const BlockContext& context, const BlockParameters& parameters, size_t rows, Workspace& workspace,
           const capture::Watch& watch)
      : config_(context.config),
        context_(context),
        parameters_(parameters),
        rows_(rows),
        workspace_(workspace),
        watch_(watch) {}

  void run() {
    // What attention reads stands where its output comes to: it has been read by then.
    const std::span<float> hidden = of_width(workspace_.hidden), middle = of_width(workspace_.middle);
    if (norms_input()) norm_rows(parameters_.attention_norm, config_.norm_epsilon, hidden, middle);
    const std::span<const float> heads = attend(norms_input() ? middle : hidden);
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

  // A norm before the half or behind its sum, and one behind the half.
  struct HalfNorms {
    const NormParameters &norm, &around;
  };

  HalfNorms attention_norms() const { return {parameters_.attention_norm, parameters_.attention_output_norm}; }
  HalfNorms feed_forward_norms() const { return {parameters_.feed_forward_norm, parameters_.feed_forward_output_norm}; }

  // Whether a half reads its input normed.
  bool norms_input() const { return config_.has_final_norm(); }

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
    linear::linear(heads, rows_, parameters_.attention.output, middle, {}, context_.compute);
    show(Stage::attention_output, middle);
    finish_half(attention_norms(), hidden, middle);
    show(Stage::attention_block_output, middle);
    if (config_.d_ff == 0) return show(Stage::layer_output, middle);
    const std::span<const float> input = second_input(middle, hidden);
    show(Stage::feed_forward_input, input);
    const std::span<float> wide = workspace_.wide.span(rows_ * (config_.gated ? 2 : 1) * config_.d_ff);
    feed_forward(input, rows_, wide, hidden);
    watch_.show(Stage::feed_forward_hidden, {1, rows_, config_.d_ff}, wide.first(rows_ * config_.d_ff));
    show(Stage::feed_forward_output, hidden);
    finish_half(feed_forward_norms(), middle, hidden);
    show(Stage::layer_output, hidden);
  }

  void run_by_rows(std::span<const float> heads, std::span<float> middle, std::span<float> hidden) const {
    const size_t threads = base::num_threads(), width = heads.size() / rows_, d_model = config_.d_model;
    const size_t rounds = (rows_ + threads * kMostRows - 1) / (threads * kMostRows), blocks = rounds * threads;
    const size_t most = (rows_ + blocks - 1) / blocks;  // rows of a block
    // Room for later runs of fewer rows too, which are not taken so and keep both maps of a gated half.
    const size_t room = config_.gated ? std::max(threads * most, 2 * kLeastRows * threads) : threads * most;
    const std::span<float> wide = workspace_.wide.span(room * config_.d_ff);
    base::parallel_for(blocks, [&](size_t block) {
      const size_t first = rows_ * block / blocks, rows = rows_ * (block + 1) / blocks - first;
      const std::span<float> x = hidden.subspan(first * d_model, rows * d_model);
      const std::span<float> h = middle.subspan(first * d_model, rows * d_model);
      linear::linear(heads.subspan(first * width, rows * width), rows, parameters_.attention.output, h, {},
                     context_.compute);
      finish_half(attention_norms(), x, h);
      if (config_.d_ff == 0) return;
      const std::span<float> own = wide.subspan(base::thread_index() * most * config_.d_ff, rows * config_.d_ff);
      feed_forward(second_input(h, x), rows, own, x);
      finish_half(feed_forward_norms(), h, x);
    });
    show(Stage::layer_output, config_.d_ff == 0 ? middle : hidden);
  }

  // What the second half of the block reads: its input, normed where the norm stands before the half. hidden, the
  // block's input, has been read, so that there is room for it there.
  std::span<const float> second_input(std::span<const float> middle, std::span<float> hidden) const {
    const std::span<const float> input = config_.parallel_halves ? std::span<const float>(hidden) : middle;
    if (!norms_input()) return input;
    norm_rows(parameters_.feed_forward_norm, config_.norm_epsilon, input, hidden);
    return hidden;
  }

  // What a half of the block hands on: its output and its input, added and normed as the placement says, in output.
  void finish_half(const HalfNorms& norms, std::span<const float> input, std::span<float> output) const {
    if (config_.norm_placement == NormPlacement::post) {
      return add_norm_rows(norms.norm, config_.norm_epsilon, output, input, output);
    }
    if (config_.norm_placement == NormPlacement::around) norm_rows(norms.around, config_.norm_epsilon, output, output);
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
                                         .sequences = workspace_.sequences,
                                         .turns = context_.turns,
                                         .past = context_.past,
                                         .kept = context_.kept,
                                         .compute = context_.compute};
    const attention::AttentionConfig config = config_.attention_of(watch_.layer);
    return attention::attend_with_heads(config, parameters_.attention, same, workspace_.attention, watch_);
  }

  // Shapes: input, output [rows, d_model], which may be the same; wide [rows, d_ff] or, if gated, twice that, with
  // which the threads meet once less.
  void feed_forward(std::span<const float> input, size_t rows, std::span<float> wide, std::span<float> output) const {
    const std::span<float> hidden = wide.first(rows * config_.d_ff);
    const linear::Epilogue activated{.activation = config_.activation};
    if (config_.gated && wide.size() == hidden.size()) {
      linear::linear(input, rows, parameters_.feed_forward_in, hidden, {}, context_.compute);
      linear::linear(input, rows, parameters_.feed_forward_gate, hidden,
                     {.activation = config_.activation, .factor = hidden.data()}, context_.compute);
    } else if (config_.gated) {
      const std::span<float> open = wide.subspan(hidden.size());
      const linear::LinearPart parts[] = {{&parameters_.feed_forward_gate, hidden, activated},
                                          {&parameters_.feed_forward_in, open}};
      linear::linear(input, rows, parts, context_.compute);
      multiply_rows(open, hidden);
    } else {
      linear::linear(input, rows, parameters_.feed_forward_in, hidden, activated, context_.compute);
    }
    linear::linear(hidden, rows, parameters_.feed_forward_out, output, {}, context_.compute);
  }

  const ModelConfig& config_;
  const BlockContext& context_;
  const BlockParameters& parameters_;
  size_t rows_;
  Workspace& workspace_;
  const capture::Watch& watch_;
};

}  // namespace

void run_block(const BlockContext& context, const BlockParameters& parameters, size_t rows, Workspace& workspace,
               const capture::Watch& watch) {
  BlockRun(context, parameters, rows, workspace, watch).run();
}

}  // namespace clearhead::model
