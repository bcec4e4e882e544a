// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "clearhead/base/error.h"

namespace clearhead::model {
namespace {

constexpr size_t kMaxLayers = 512;

void expect(bool holds, std::string_view expected, const std::string& found) {
  if (!holds) base::fail("model config", expected, found);
}

void check_patches(const PatchGrid& grid) {
  expect(grid.channels >= 1 && grid.patch_height >= 1 && grid.patch_width >= 1,
         "num_channels and patch_size of 1 or more",
         fmt::format("{}, {} x {}", grid.channels, grid.patch_height, grid.patch_width));
  expect(grid.image_height >= 1 && grid.image_width >= 1 && grid.image_height % grid.patch_height == 0 &&
             grid.image_width % grid.patch_width == 0,
         fmt::format("an image_size that patches of {} x {} fill", grid.patch_height, grid.patch_width),
         fmt::format("{} x {}", grid.image_height, grid.image_width));
}

}  // namespace

attention::AttentionConfig ModelConfig::attention_of(size_t layer) const {
  attention::AttentionConfig config = attention;
  if (is_near(layer)) config.left_window = near.left_window;
  return config;
}

std::string ModelConfig::attention_json() const {
  std::string text = attention.json();
  if (near.is_near.empty()) return text;
  std::vector<std::string> windows;
  for (size_t layer = 0; layer < num_layers; ++layer) {
    const std::optional<size_t> window = attention_of(layer).left_window;
    windows.push_back(window ? fmt::format("{}", *window) : "null");
  }
  text.pop_back();
  return text + fmt::format(R"(, "left_windows": [{}]}})", fmt::join(windows, ", "));
}

const RotaryConfig* ModelConfig::rotary_of(size_t layer) const {
  if (is_near(layer) && near.rotary) return &*near.rotary;
  return rotary ? &*rotary : nullptr;
}

void ModelConfig::check() const {
  expect(patches || vocab_size >= 1, "a vocab_size of 1 or more", "0");
  if (patches) check_patches(*patches);
  expect(d_model >= 1, "a d_model of 1 or more", "0");
  expect(num_layers >= 1 && num_layers <= kMaxLayers, fmt::format("num_layers from 1 to {}", kMaxLayers),
         fmt::format("{}", num_layers));
  expect(std::isfinite(norm_epsilon) && norm_epsilon >= 0, "a norm_epsilon of 0 or more",
         fmt::format("{}", norm_epsilon));
  expect(positions != Positions::learned || context_len >= 1, "a context_len of 1 or more for learned positions", "0");
  const size_t heads = attention.num_heads, kv_heads = attention.num_kv_heads;
  expect(heads >= 1 && attention.head_dim >= 1 && attention.value_dim >= 1,
         "num_heads, head_dim and value_dim of 1 or more",
         fmt::format("{}, {} and {}", heads, attention.head_dim, attention.value_dim));
  expect(kv_heads >= 1 && heads % kv_heads == 0, "num_kv_heads that divide num_heads",
         fmt::format("{} and {}", kv_heads, heads));
  expect(!attention.scale || std::isfinite(*attention.scale), "a finite scale of the scores",
         fmt::format("{}", attention.scale.value_or(0)));
  if (rotary) rotary->check(attention.head_dim);
  if (near.rotary) near.rotary->check(attention.head_dim);
  expect(near.is_near.empty() || near.is_near.size() == num_layers,
         fmt::format("{} layers of which some are near", num_layers), fmt::format("{}", near.is_near.size()));
  expect(std::isfinite(embedding_scale), "a finite scale of the embedding", fmt::format("{}", embedding_scale));
  expect(!logit_soft_cap || (std::isfinite(*logit_soft_cap) && *logit_soft_cap > 0), "a soft cap of logits above 0",
         fmt::format("{}", logit_soft_cap.value_or(0)));
  expect(!parallel_halves || (norm_placement == NormPlacement::pre && d_ff != 0),
         "parallel halves of a pre-norm block with a feed-forward half", "another block");
  if (split == attention::Split::input) {
    expect(kv_heads == heads && attention.head_dim == attention.value_dim && d_model / heads == attention.head_dim &&
               d_model % heads == 0,
           "heads that cut the input: num_heads x head_dim = d_model",
           fmt::format("{} x {} and {}", heads, attention.head_dim, d_model));
  }
}

}  // namespace clearhead::model
