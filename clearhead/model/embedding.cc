// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/embedding.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/model/norm.h"

namespace clearhead::model {
namespace {

constexpr double kWavelengthBase = 10000;  // Vaswani et al. 2017, section 3.5

void check_ids(std::span<const int64_t> ids, size_t rows, std::string_view what) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<uint64_t>(ids[i]) < rows) continue;
    base::refuse("model", fmt::format("{} below {}, the rows of the embedding", what, rows),
                 fmt::format("{} at position {}", ids[i], i), "tokenizer and model do not belong together");
  }
}

void check_input(const Parameters& parameters, const ModelConfig& config, const ModelInput& input) {
  const size_t seq_len = input.ids.size();
  if (seq_len == 0) base::refuse("model", "at least one token", "none");
  if (config.context_len != 0 && seq_len > config.context_len) {
    base::refuse("model", fmt::format("at most {} tokens, the positions of the model", config.context_len),
                 fmt::format("{}", seq_len));
  }
  if (!input.type_ids.empty() && input.type_ids.size() != seq_len) {
    base::refuse("model", fmt::format("a token type for each of {} tokens", seq_len),
                 fmt::format("{}", input.type_ids.size()));
  }
  check_ids(input.ids, parameters.token_embedding.rows(), "token ids");
  if (parameters.token_type_embedding.rows() != 0) {
    check_ids(input.type_ids, parameters.token_type_embedding.rows(), "token types");
  }
}

// The rows of a table for all tokens, added to sum [seq, d_model] and shown if wanted. row_of(i) is token i's row.
template <class RowOf>
void add_rows(const EmbeddingTable& table, const RowOf& row_of, tensor::Tensor& sum, capture::Stage stage,
              capture::Observer* observer) {
  tensor::Tensor rows(sum.shape());
  const size_t seq_len = sum.shape()[1], d_model = sum.shape()[2];
  const std::span<float> into = rows.as<float>(), total = sum.as<float>();
  base::parallel_for(seq_len, [&](size_t i) {
    table.read(row_of(i), into.subspan(i * d_model, d_model));
    for (size_t at = i * d_model; at < (i + 1) * d_model; ++at) total[at] += into[at];
  });
  if (observer != nullptr && observer->wants(stage, 0)) observer->observe(stage, 0, rows);
}

}  // namespace

tensor::Tensor embed(const ModelConfig& config, const Parameters& parameters, const ModelInput& input,
                     capture::Observer* observer) {
  using capture::Stage;
  check_input(parameters, config, input);
  tensor::Tensor sum(tensor::Shape{1, input.ids.size(), config.d_model});
  const auto id = [&](size_t i) { return static_cast<size_t>(input.ids[i]); };
  const auto type = [&](size_t i) { return input.type_ids.empty() ? 0 : static_cast<size_t>(input.type_ids[i]); };
  add_rows(parameters.token_embedding, id, sum, Stage::token_embedding, observer);
  if (parameters.token_type_embedding.rows() != 0) {
    add_rows(parameters.token_type_embedding, type, sum, Stage::token_type_embedding, observer);
  }
  add_rows(
      parameters.position_embedding, [](size_t i) { return i; }, sum, Stage::position_embedding, observer);
  if (config.embedding_norm) norm_rows(parameters.embedding_norm, config.norm_epsilon, sum, sum);
  if (observer != nullptr && observer->wants(Stage::embedding, 0)) observer->observe(Stage::embedding, 0, sum);
  return sum;
}

EmbeddingTable sinusoidal_positions(size_t d_model) {
  return {std::numeric_limits<size_t>::max(), [d_model](size_t position, std::span<float> row) {
            for (size_t i = 0; i < d_model; ++i) {
              const double exponent = static_cast<double>(i - i % 2) / static_cast<double>(d_model);
              const double angle = static_cast<double>(position) / std::pow(kWavelengthBase, exponent);
              row[i] = static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
            }
          }};
}

}  // namespace clearhead::model
