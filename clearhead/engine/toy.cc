// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/toy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/embedding.h"

namespace clearhead::engine {
namespace {

constexpr std::string_view kForm = "\"toy d_model=512 heads=8 seed=7 split=projection\", each setting at most once";

uint64_t fnv(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// One sequence of numbers: word(n) and number(index) of the header.
struct Sequence {
  uint64_t key;

  Sequence(uint64_t seed, std::string_view name) : key(mix(seed + fnv(name))) {}

  uint64_t word(uint64_t n) const { return mix(key + (n + 1) * 0x9e3779b97f4a7c15); }
  double number(uint64_t index) const {
    const double u = static_cast<double>((word(2 * index) >> 11) + 1) * 0x1p-53;
    const double v = static_cast<double>(word(2 * index + 1) >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
};

// A parameter tensor of the toy, drawn with all threads.
tensor::Tensor drawn(uint64_t seed, std::string_view name, tensor::Shape shape, size_t inner_dimension) {
  tensor::Tensor values(std::move(shape));
  const std::span<float> all = values.as<float>();
  const double deviation = 1 / std::sqrt(static_cast<double>(inner_dimension));
  const size_t units = all.size() / inner_dimension;  // rows
  base::parallel_for(units, [&](size_t row) {
    const size_t first = row * inner_dimension;
    fill_toy_normal(seed, name, first, deviation, all.subspan(first, inner_dimension));
  });
  return values;
}

template <class Number>
Number parse_number(std::string_view setting, std::string_view value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
    base::refuse("toy", fmt::format("{} with a whole number", setting), base::quoted(value));
  }
  return number;
}

void set(ToyConfig& config, size_t setting, std::string_view value) {
  switch (setting) {
    case 0: config.d_model = parse_number<size_t>("d_model", value); break;
    case 1: config.num_heads = parse_number<size_t>("heads", value); break;
    case 2: config.seed = parse_number<uint64_t>("seed", value); break;
    default:
      if (value != "projection" && value != "input") {
        base::refuse("toy", "split to be one of: projection, input", base::quoted(value));
      }
      config.split = value == "input" ? attention::Split::input : attention::Split::projection;
  }
}

}  // namespace

void ToyConfig::check() const {
  if (d_model < 1 || d_model > kMaxWidth) {
    base::refuse("toy", fmt::format("a d_model from 1 to {}", kMaxWidth), fmt::format("{}", d_model));
  }
  if (num_heads < 1 || d_model % num_heads != 0) {
    base::refuse("toy", fmt::format("a number of heads that divides d_model = {}", d_model),
                 fmt::format("{}", num_heads));
  }
}

std::string ToyConfig::text() const {
  return fmt::format("toy d_model={} heads={} seed={} split={}", d_model, num_heads, seed,
                     split == attention::Split::input ? "input" : "projection");
}

std::optional<ToyConfig> ToyConfig::parse(std::string_view text) {
  constexpr std::array<std::string_view, 4> kSettings = {"d_model=", "heads=", "seed=", "split="};
  if (text != "toy" && !text.starts_with("toy ")) return std::nullopt;
  ToyConfig config;
  std::array<bool, kSettings.size()> said{};
  std::string_view rest = text.substr(3);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the space
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    size_t setting = 0;
    while (setting < kSettings.size() && !word.starts_with(kSettings[setting])) ++setting;
    if (setting == kSettings.size() || std::exchange(said[setting], true)) {
      base::refuse("toy", kForm, base::quoted(word));
    }
    set(config, setting, word.substr(kSettings[setting].size()));
  }
  config.check();
  return config;
}

double toy_normal(uint64_t seed, std::string_view name, uint64_t index) { return Sequence(seed, name).number(index); }

void fill_toy_normal(uint64_t seed, std::string_view name, uint64_t first, double deviation, std::span<float> values) {
  const Sequence sequence(seed, name);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(sequence.number(first + i) * deviation);
}

model::Transformer make_toy(const ToyConfig& toy, size_t vocab_size) {
  toy.check();
  const size_t d_model = toy.d_model, heads = toy.num_heads, head_dim = d_model / heads;
  model::ModelConfig config;
  config.family = "toy";
  config.vocab_size = vocab_size;
  config.num_layers = 1;
  config.d_model = d_model;
  config.positions = model::Positions::sinusoidal;
  config.norm_placement = model::NormPlacement::none;
  config.split = toy.split;
  config.attention.num_heads = config.attention.num_kv_heads = heads;
  config.attention.head_dim = config.attention.value_dim = head_dim;

  const auto projection = [&](std::string_view name) {
    if (toy.split == attention::Split::projection) return drawn(toy.seed, name, {d_model, d_model}, d_model);
    return attention::block_diagonal(drawn(toy.seed, name, {heads, head_dim, head_dim}, head_dim));
  };
  model::Parameters parameters;
  parameters.token_embedding = {vocab_size, [seed = toy.seed, d_model](size_t id, std::span<float> row) {
                                  fill_toy_normal(seed, "token_embedding", uint64_t{id} * d_model, 1, row);
                                }};
  parameters.position_embedding = model::sinusoidal_positions(d_model);
  parameters.blocks.resize(1);
  attention::MultiHeadParameters& learned = parameters.blocks[0].attention;
  learned.query = linear::PackedLinear(projection("query"));
  learned.key = linear::PackedLinear(projection("key"));
  learned.value = linear::PackedLinear(projection("value"));
  learned.output = linear::PackedLinear(drawn(toy.seed, "output", {d_model, d_model}, d_model));
  return {std::move(config), std::move(parameters)};
}

}  // namespace clearhead::engine
