// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/capture/watch.h"
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

// One length turns all parts of a text.
void check_declared(const ModelConfig& config, const ModelInput& input) {
  const size_t all = input.first_position() + input.ids.size();
  if (input.declared_len == 0) {
    if (input.cache == nullptr || !config.depends_on_length()) return;
    base::refuse("model", "the length of the whole text, on which its positions depend", "none");
  }
  if (!input.lengths.empty()) base::refuse("model", "one text, whose length is declared", "several");
  if (all <= input.declared_len || !config.depends_on_length()) return;
  base::refuse("model", fmt::format("at most {} tokens, the declared length of the text", input.declared_len),
               fmt::format("{}", all));
}

void check_lengths(const ModelConfig& config, const ModelInput& input) {
  check_declared(config, input);
  size_t sum = 0;
  const auto check = [&](size_t seq_len) {
    if (seq_len == 0) base::refuse("model", "at least one token", "none");
    const size_t all = input.first_position() + seq_len;
    if (config.context_len != 0 && all > config.context_len) {
      base::refuse("model", fmt::format("at most {} tokens, the positions of the model", config.context_len),
                   fmt::format("{}", all));
    }
    sum += seq_len;
  };
  if (input.lengths.empty()) return check(input.ids.size());
  for (size_t seq_len : input.lengths) check(seq_len);
  if (sum == input.ids.size()) return;
  base::refuse("model", fmt::format("texts of {} tokens together", input.ids.size()), fmt::format("{}", sum));
}

void check_input(const Parameters& parameters, const ModelConfig& config, const ModelInput& input) {
  if (!input.pixels.empty()) base::refuse("model", "token ids", "an image");
  check_lengths(config, input);
  if (!input.type_ids.empty() && input.type_ids.size() != input.ids.size()) {
    base::refuse("model", fmt::format("a token type for each of {} tokens", input.ids.size()),
                 fmt::format("{}", input.type_ids.size()));
  }
  check_ids(input.ids, parameters.token_embedding.rows(), "token ids");
  if (parameters.token_type_embedding.rows() != 0) {
    check_ids(input.type_ids, parameters.token_type_embedding.rows(), "token types");
  }
}

// first: tokens of the same text that came before.
void add_position_rows(const ModelConfig& config, std::span<const int64_t> ids, std::vector<size_t>& rows,
                       size_t first = 0) {
  size_t next = first + (config.padding_id ? *config.padding_id + 1 : 0);
  for (const int64_t id : ids) {
    const bool is_padding = config.padding_id && id == static_cast<int64_t>(*config.padding_id);
    rows.push_back(is_padding ? *config.padding_id : next++);
  }
}

// Where the texts stand, and the rows of their positions.
void place_texts(const ModelConfig& config, const ModelInput& input, Workspace& workspace) {
  workspace.sequences.clear();
  workspace.positions.clear();
  const auto place = [&](size_t seq_len) {
    const size_t first = workspace.positions.size();
    workspace.sequences.push_back({0, first, seq_len, first, seq_len, config.attention.key_offset});
    add_position_rows(config, input.ids.subspan(first, seq_len), workspace.positions, input.first_position());
  };
  if (input.lengths.empty()) return place(input.ids.size());
  for (size_t seq_len : input.lengths) place(seq_len);
}

// One table that adds to the embedding, and its rows by themselves where somebody wants to see them.
struct Addend {
  const EmbeddingTable* table;
  capture::Stage stage;
  tensor::Tensor shown;  // [1, rows, d_model] or empty
};

}  // namespace

std::vector<size_t> position_rows(const ModelConfig& config, std::span<const int64_t> ids) {
  std::vector<size_t> rows;
  add_position_rows(config, ids, rows);
  return rows;
}

void embed(const ModelConfig& config, const Parameters& parameters, const ModelInput& input, Workspace& workspace,
           capture::Observer* observer) {
  using capture::Stage;
  check_input(parameters, config, input);
  place_texts(config, input, workspace);
  const size_t rows = input.ids.size(), d_model = config.d_model;
  const capture::Watch watch{observer, 0};
  std::array<Addend, 3> addends = {{{&parameters.token_embedding, Stage::token_embedding, {}},
                                    {&parameters.token_type_embedding, Stage::token_type_embedding, {}},
                                    {&parameters.position_embedding, Stage::position_embedding, {}}}};
  for (Addend& one : addends) {
    if (one.table->rows() != 0 && watch.wants(one.stage)) one.shown = tensor::Tensor({1, rows, d_model});
  }
  const std::span<float> sum = workspace.hidden.span(rows * d_model);
  const std::span<float> table_rows = workspace.table_rows.span(base::num_threads() * d_model);
  base::parallel_for(rows, [&](size_t i) {
    const size_t type = input.type_ids.empty() ? 0 : static_cast<size_t>(input.type_ids[i]);
    const size_t row_of[] = {static_cast<size_t>(input.ids[i]), type, workspace.positions[i]};
    const std::span<float> into = sum.subspan(i * d_model, d_model);
    const std::span<float> row = table_rows.subspan(base::thread_index() * d_model, d_model);
    std::ranges::fill(into, 0.0f);
    for (size_t k = 0; k < addends.size(); ++k) {
      if (addends[k].table->rows() == 0) continue;
      addends[k].table->read(row_of[k], row);
      const float scale = k == 0 ? config.embedding_scale : 1;
      for (size_t d = 0; d < d_model; ++d) into[d] += scale * row[d];
      if (addends[k].shown.elements() == 0) continue;
      std::ranges::copy(row, addends[k].shown.as<float>().subspan(i * d_model, d_model).begin());
    }
  });
  for (const Addend& one : addends) {
    if (one.shown.elements() != 0) observer->observe(one.stage, 0, one.shown);
  }
  if (config.embedding_norm) norm_rows(parameters.embedding_norm, config.norm_epsilon, sum, sum);
  watch.show(Stage::embedding, {1, rows, d_model}, sum);
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
