// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/stage.h"

#include <algorithm>
#include <array>

namespace clearhead::capture {
namespace {

constexpr std::array kStages = {
    StageInfo{Stage::token_embedding, "token_embedding", Place::before_layers, "[batch, seq, d_model]", std::nullopt,
              "E[token id]", "The vector that the model has learned for each token, looked up as in a dictionary.",
              "Vaswani et al. 2017, section 3.4"},
    StageInfo{Stage::position_embedding, "position_embedding", Place::before_layers, "[batch, seq, d_model]",
              std::nullopt, "P[position]",
              "A vector for the place in the text: attention alone would not know which token comes first.",
              "Vaswani et al. 2017, section 3.5"},
    StageInfo{Stage::token_type_embedding, "token_type_embedding", Place::before_layers, "[batch, seq, d_model]",
              std::nullopt, "T[token type]", "A vector that says to which of two texts a token belongs.",
              "Devlin et al. 2018, section 3"},
    StageInfo{Stage::embedding, "embedding", Place::before_layers, "[batch, seq, d_model]", std::nullopt,
              "token_embedding + token_type_embedding + position_embedding, normed where the model norms them (the "
              "first scaled where it scales it)",
              "What enters layer 0: each token's meaning and place in one vector.", "Devlin et al. 2018, section 3"},
    StageInfo{Stage::attention_input, "attention_input", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
              "x, or norm(x) in a pre-norm block; x = the layer's input",
              "What query, key and value are made of: one vector that takes three roles.",
              "Vaswani et al. 2017, section 3.2.3"},
    StageInfo{Stage::query, "query", Place::in_layer, "[batch, seq, heads, head_dim]", 2,
              "attention_input W_Q^T + b_Q, cut into heads", "What each token is looking for.",
              "Vaswani et al. 2017, section 3.2.2"},
    StageInfo{Stage::key, "key", Place::in_layer, "[batch, seq, kv_heads, head_dim]", 2,
              "attention_input W_K^T + b_K, cut into heads", "What each token can be found by.",
              "Vaswani et al. 2017, section 3.2.2"},
    StageInfo{Stage::value, "value", Place::in_layer, "[batch, seq, kv_heads, value_dim]", 2,
              "attention_input W_V^T + b_V, cut into heads", "What each token gives once it is found.",
              "Vaswani et al. 2017, section 3.2.2"},
    StageInfo{
        Stage::rotated_query, "rotated_query", Place::in_layer, "[batch, seq, heads, head_dim]", 2,
        "query (normed in models that norm heads), each pair of dimensions turned by position times its frequency",
        "The query after rotary positions; absent in models without them.", "Su et al. 2021, section 3.2.2"},
    StageInfo{Stage::rotated_key, "rotated_key", Place::in_layer, "[batch, seq, kv_heads, head_dim]", 2,
              "key (normed in models that norm heads), each pair of dimensions turned by position times its frequency",
              "The key after rotary positions; absent in models without them.", "Su et al. 2021, section 3.2.2"},
    StageInfo{Stage::raw_scores, "raw_scores", Place::in_layer, "[batch, heads, query, key]", 1, "q . k",
              "How well each query matches each key, its own included.", "Vaswani et al. 2017, section 3.2.1"},
    StageInfo{Stage::scores, "scores", Place::in_layer, "[batch, heads, query, key]", 1,
              "scale q . k + bias; -inf where the key may not be seen; scale = 1 / sqrt(head_dim) unless given",
              "The matches in natural units, small enough that softmax neither saturates nor flattens.",
              "Vaswani et al. 2017, section 3.2.1"},
    StageInfo{Stage::kernel_scores, "kernel_scores", Place::in_layer, "[batch, heads, query, key]", 1,
              "(q float(scale log2 e)) . k + bias float(log2 e)",
              "The scores in the unit of the kernel, log2: the weights are computed from these.",
              "Dao et al. 2022, algorithm 1, with powers of two"},
    StageInfo{Stage::row_reference, "row_reference", Place::in_layer, "[batch, heads, query]", 1,
              "ceil(max over keys of kernel_scores); -inf if no key may be seen",
              "A whole number near the row's largest score, so that no power of two overflows.",
              "Milakov and Gimelshein 2018, algorithm 3"},
    StageInfo{Stage::row_sum, "row_sum", Place::in_layer, "[batch, heads, query]", 1,
              "sum over keys of exp2(kernel_scores - row_reference); 0 if no key may be seen",
              "What the row's powers are divided by, so that its weights sum to 1.",
              "Milakov and Gimelshein 2018, algorithm 3"},
    StageInfo{Stage::weights, "weights", Place::in_layer, "[batch, heads, query, key]", 1,
              "exp2(kernel_scores - row_reference) / row_sum = softmax(scores)",
              "How each token shares out its attention: every row sums to 1, or is 0 if nothing may be seen.",
              "Vaswani et al. 2017, section 3.2.1"},
    StageInfo{Stage::head_output, "head_output", Place::in_layer, "[batch, seq, heads, value_dim]", 2, "weights value",
              "What each head has gathered: the values, weighted.", "Vaswani et al. 2017, section 3.2.1"},
    StageInfo{Stage::head_contribution, "head_contribution", Place::in_layer, "[batch, seq, heads, d_model]", 2,
              "head_output times the head's columns of W_O",
              "What each head adds to the output: over all heads, and with b_O, they sum to attention_output.",
              "Elhage et al. 2021, A Mathematical Framework for Transformer Circuits"},
    StageInfo{Stage::attention_output, "attention_output", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
              "concat(head_output) W_O^T + b_O", "All heads side by side, mixed by one more matrix.",
              "Vaswani et al. 2017, section 3.2.2"},
    StageInfo{
        Stage::attention_block_output, "attention_block_output", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
        "x + attention_output (normed where norms stand around), normed in a post-norm block; x = the layer's input",
        "What was there before, and what attention adds to it.", "Vaswani et al. 2017, section 3.1"},
    StageInfo{Stage::feed_forward_input, "feed_forward_input", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
              "attention_block_output (with parallel halves x), normed in a pre-norm block",
              "What the feed-forward half of the block reads.", "Vaswani et al. 2017, section 3.3"},
    StageInfo{Stage::feed_forward_hidden, "feed_forward_hidden", Place::in_layer, "[batch, seq, d_ff]", std::nullopt,
              "activation(feed_forward_input W_1^T + b_1), gated (activation(feed_forward_input W_G^T) * "
              "feed_forward_input W_1^T)",
              "Each token by itself, in a wider space, bent.", "Vaswani et al. 2017, section 3.3"},
    StageInfo{Stage::feed_forward_output, "feed_forward_output", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
              "feed_forward_hidden W_2^T + b_2", "Back to the model's width.", "Vaswani et al. 2017, section 3.3"},
    StageInfo{
        Stage::layer_output, "layer_output", Place::in_layer, "[batch, seq, d_model]", std::nullopt,
        "attention_block_output + feed_forward_output (normed where norms stand around), normed in a post-norm block",
        "What the layer hands to the next one.", "Vaswani et al. 2017, section 3.1"},
    StageInfo{Stage::logits, "logits", Place::after_layers, "[batch, seq, vocab]", std::nullopt,
              "the last layer's output, normed in a pre-norm model, times the vocabulary's matrix; cap tanh(that / "
              "cap) with a cap",
              "For each token of the vocabulary, how well it would come next.", "Vaswani et al. 2017, section 3.4"},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kStages.size(); ++i) {
    if (static_cast<size_t>(kStages[i].stage) != i) return false;
  }
  return kStages.size() == static_cast<size_t>(Stage::logits) + 1;
}
static_assert(in_order());

}  // namespace

std::span<const StageInfo> stages() { return kStages; }

const StageInfo& info(Stage stage) { return kStages[static_cast<size_t>(stage)]; }

bool is_square(Stage stage) { return info(stage).shape == "[batch, heads, query, key]"; }

std::optional<Stage> stage_named(std::string_view name) {
  const auto found = std::ranges::find(kStages, name, &StageInfo::name);
  if (found == kStages.end()) return std::nullopt;
  return found->stage;
}

std::vector<std::string_view> axes(Stage stage) {
  std::vector<std::string_view> words;
  std::string_view rest = info(stage).shape;
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    words.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 2);
  }
  return words;
}

}  // namespace clearhead::capture
