// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/capture/observer.h"
#include "clearhead/model/config.h"
#include "clearhead/model/parameters.h"
#include "clearhead/model/transformer.h"
#include "clearhead/model/workspace.h"

namespace clearhead::model {

// The row of the position table of each token: i, or with a padding_id p
//
//   row_i = p if id_i = p, else p + 1 + (how many of the ids before i are not p)
//
// Source: Liu et al. 2019, RoBERTa, in the form of its code.
std::vector<size_t> position_rows(const ModelConfig& config, std::span<const int64_t> ids);

// What enters layer 0, from token ids:
//
//   embedding_i = norm(scale E[id_i] + T[type_i] + P[row_i])      without T, P and norm where the model has none
//
// Positions are counted in each text. Shows token_embedding, token_type_embedding, position_embedding and embedding.
// Shapes: workspace.hidden [rows, d_model]. workspace.sequences and positions are those of the input's texts.
// Throws: Error (usage) if there is no token, an id has no row in its table, a text has more tokens than positions,
// there are not as many types as tokens, or the texts do not have as many tokens together.
void embed(const ModelConfig& config, const Parameters& parameters, const ModelInput& input, Workspace& workspace,
           capture::Observer* observer);

// Positions without parameters, for any length: row p is
//
//   P[p][2 i] = sin(p / 10000^(2 i / d_model))        P[p][2 i + 1] = cos(p / 10000^(2 i / d_model))
//
// computed in double and rounded once.
// Shapes: rows [d_model].
// Source: Vaswani et al. 2017, section 3.5.
EmbeddingTable sinusoidal_positions(size_t d_model);

}  // namespace clearhead::model
