// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/capture/observer.h"
#include "clearhead/model/config.h"
#include "clearhead/model/parameters.h"
#include "clearhead/model/transformer.h"
#include "clearhead/model/workspace.h"

namespace clearhead::model {

// What enters layer 0, from an image, with p_j the values of patch j, row by row of the grid, each patch channel by
// channel:
//
//   embedding = [C + P[0]; R_0 .. R_{registers - 1}; p_0 W^T + b + P[1]; p_1 W^T + b + P[2]; ...]
//
// C is the class token, R are the registers, which have no place. Shows token_embedding (the rows without P),
// position_embedding (P, 0 for registers) and embedding.
// Shapes: input.pixels [channels, height, width]; workspace.hidden [rows, d_model].
// Throws: Error (usage) unless there is an image of the model's size: positions are not interpolated.
// Source: Dosovitskiy et al. 2021, section 3.1; Darcet et al. 2024.
void embed_image(const ModelConfig& config, const Parameters& parameters, const ModelInput& input, Workspace& workspace,
                 capture::Observer* observer);

}  // namespace clearhead::model
