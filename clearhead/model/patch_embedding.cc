// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/patch_embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "clearhead/base/error.h"
#include "clearhead/capture/watch.h"
#include "clearhead/linear/linear.h"

namespace clearhead::model {
namespace {

void check_image(const PatchGrid& grid, const ModelInput& input) {
  if (!input.ids.empty() || !input.lengths.empty() || input.cache != nullptr) {
    base::refuse("model", "one image", "token ids", "this model reads no text");
  }
  if (input.pixels.size() == grid.image_values()) return;
  base::refuse(
      "model", fmt::format("an image of {} x {} x {} values", grid.channels, grid.image_height, grid.image_width),
      fmt::format("{} values", input.pixels.size()), "resize the image: positions are not interpolated to other sizes");
}

// The values of every patch. Shapes: pixels [channels, height, width], patches [patches, channels x height x width].
void cut_patches(const PatchGrid& grid, std::span<const float> pixels, std::span<float> patches) {
  auto into = patches.begin();
  for (size_t patch = 0; patch < grid.patches(); ++patch) {
    const size_t top = patch / grid.columns() * grid.patch_height, left = patch % grid.columns() * grid.patch_width;
    for (size_t line = 0; line < grid.channels * grid.patch_height; ++line) {
      const size_t channel = line / grid.patch_height, y = top + line % grid.patch_height;
      const auto from = pixels.subspan((channel * grid.image_height + y) * grid.image_width + left, grid.patch_width);
      into = std::ranges::copy(from, into).out;
    }
  }
}

}  // namespace

void embed_image(const ModelConfig& config, const Parameters& parameters, const ModelInput& input, Workspace& workspace,
                 capture::Observer* observer) {
  using capture::Stage;
  const PatchGrid& grid = *config.patches;
  check_image(grid, input);
  const size_t rows = grid.tokens(), d_model = config.d_model, first = 1 + grid.registers;
  workspace.sequences.assign(1, {0, 0, rows, 0, rows, config.attention.key_offset});
  workspace.positions.resize(rows);
  std::iota(workspace.positions.begin(), workspace.positions.end(), size_t{0});
  const capture::Watch watch{observer, 0};

  const std::span<float> hidden = workspace.hidden.span(rows * d_model);                       // [rows, d_model]
  const std::span<float> patches = workspace.wide.span(grid.patches() * grid.patch_values());  // [patches, values]
  cut_patches(grid, input.pixels, patches);
  std::ranges::copy(parameters.class_token.as<float>(), hidden.begin());
  std::ranges::copy(parameters.register_tokens.as<float>(), hidden.subspan(d_model).begin());
  linear::linear(patches, grid.patches(), parameters.patch_projection, hidden.subspan(first * d_model));
  watch.show(Stage::token_embedding, {1, rows, d_model}, hidden);

  const std::span<float> places = workspace.middle.span(rows * d_model);  // [rows, d_model]
  std::ranges::fill(places, 0.0f);
  for (size_t row = 0; row <= grid.patches(); ++row) {
    const size_t at = row == 0 ? 0 : grid.registers + row;
    parameters.position_embedding.read(row, places.subspan(at * d_model, d_model));
  }
  watch.show(Stage::position_embedding, {1, rows, d_model}, places);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] += places[i];
  watch.show(Stage::embedding, {1, rows, d_model}, hidden);
}

}  // namespace clearhead::model
