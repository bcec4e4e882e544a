// SPDX-License-Identifier: Apache-2.0
// Small models of every architecture as GGUF against the same parameters in safetensors.
#include "tests/model/gguf_twin.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <span>

#include "clearhead/tensor/compare.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using twin::Gguf;
using twin::Hub;

// None is 1, the padding of two of the models, whose place a GGUF does not have.
const std::vector<int64_t> kIds = {3, 7, 0, 41, 7, 12, 30, 2, 9, 9, 8, 22, 5, 40, 6, 33, 18, 4, 27, 11};

std::vector<Stage> stages_of(const LoadedModel& model) {
  std::vector<Stage> stages = {Stage::embedding, Stage::weights, Stage::layer_output};
  if (model.transformer.has(Stage::logits)) stages.push_back(Stage::logits);
  return stages;
}

// What differs most in embedding, weights, outputs of layers, hidden state and logits.
double furthest(const LoadedModel& one, const LoadedModel& other) {
  EXPECT_TRUE(other.warnings.empty()) << other.warnings[0];
  const std::vector<Stage> stages = stages_of(one);
  for (const Stage stage : stages) EXPECT_TRUE(other.transformer.has(stage));
  tests::StageCollector a({stages.begin(), stages.end()}), b({stages.begin(), stages.end()});
  const tensor::Tensor truth = one.transformer.run({kIds, {}}, &a);
  double worst = tensor::compare(other.transformer.run({kIds, {}}, &b), truth).max_abs;
  const size_t layers = one.transformer.config().num_layers;
  for (const Stage stage : stages) {
    const bool once = stage == Stage::embedding || stage == Stage::logits;
    for (size_t layer = 0; layer < (once ? 1 : layers); ++layer) {
      worst = std::max(worst, tensor::compare(b.get(stage, layer), a.get(stage, layer)).max_abs);
    }
  }
  return worst;
}

struct Twin {
  std::string name, folder, architecture;
  nlohmann::json hub = nlohmann::json::object();  // settings of config.json to be changed
  twin::Settings gguf = {};                       // settings beside those of the sizes
};

void PrintTo(const Twin& twin, std::ostream* out) { *out << twin.name; }

Gguf converted(const Hub& hub, const std::string& architecture) {
  if (architecture == "bert") return twin::bert(hub);
  if (architecture == "gpt2") return twin::gpt2(hub);
  if (architecture == "gptneox") return twin::gpt_neox(hub);
  return twin::gated(hub, architecture);
}

Hub hub_of(const Twin& twin) {
  Hub hub(twin.folder);
  hub.set(twin.hub);
  if (twin.folder == "roberta") hub.tensors.erase("lm_head.bias");  // else it is named as not used
  return hub;
}

Gguf gguf_of(const Twin& twin) {
  Gguf file = converted(hub_of(twin), twin.architecture);
  for (const auto& [key, setting] : twin.gguf) file.settings[key] = setting;
  return file;
}

nlohmann::json rope(const std::string& type, nlohmann::json more) {
  more.update({{"rope_type", type}, {"rope_theta", 100.0}});
  return {{"rope_parameters", more}};
}

std::vector<Twin> twins() {
  const nlohmann::json yarn = {{"factor", 4}, {"original_max_position_embeddings", 16}};
  nlohmann::json ramp = yarn, given = yarn, whole = yarn;
  ramp.update({{"beta_fast", 4}, {"beta_slow", 0.5}});
  given["attention_factor"] = 1.5;
  whole["original_max_position_embeddings"] = 64;
  const std::string llama = "decoders/llama", gemma2 = "decoders/gemma2", gemma3 = "decoders/gemma3", word = "yarn";
  const nlohmann::json far = {{"rope_theta", 10000.0}, {"rope_type", "default"}};
  const nlohmann::json eights = {{"query_pre_attn_scalar", 8}};
  const twin::Settings near = {{"attention.sliding_window", uint32_t{5}},
                               {"rope.freq_base", 1000.f},
                               {"rope.freq_base_swa", 100.f},
                               {"rope.scaling.type", "linear"},
                               {"rope.scaling.factor", 2.f}};
  twin::Settings alternating = near, sixths = near, seconds = near, without = near;
  alternating["attention.sliding_window_pattern"] = std::vector<bool>{true, false, true};
  seconds["attention.sliding_window_pattern"] = uint32_t{2};
  without.erase("attention.sliding_window");
  const auto types = [](const std::string& types_of_layers) {
    nlohmann::json list = nlohmann::json::array();
    for (const char each : types_of_layers) list.push_back(each == 'n' ? "sliding_attention" : "full_attention");
    return nlohmann::json{{"layer_types", list}, {"query_pre_attn_scalar", 8}};
  };
  return {
      {"llama", llama, "llama"},
      {"biases", "decoders/llama_wide_heads", "llama"},
      {"qwen2", "decoders/qwen2", "qwen2", {{"use_sliding_window", false}, {"layer_types", nullptr}}},
      {"qwen3", "decoders/qwen3", "qwen3"},
      {"gemma2",
       gemma2,
       "gemma2",
       eights,
       {{"attention.sliding_window", uint32_t{5}}, {"attn_logit_softcapping", 3.f}, {"final_logit_softcapping", 5.f}}},
      {"gemma2_caps",
       gemma2,
       "gemma2",
       {{"query_pre_attn_scalar", 8}, {"attn_logit_softcapping", 50}, {"final_logit_softcapping", 30}},
       {{"attention.sliding_window", uint32_t{5}}}},
      {"gemma3", gemma3, "gemma3", eights, alternating},
      {"gemma3_sixths", gemma3, "gemma3", types("nnn"), sixths},
      {"gemma3_seconds", gemma3, "gemma3", types("nfn"), seconds},
      {"gemma3_without", gemma3, "gemma3", types("fff"), without},
      {"gpt2", "gpt2", "gpt2"},
      {"gpt_neox", "decoders/gpt_neox", "gptneox"},
      {"gpt_neox_in_turn", "decoders/gpt_neox", "gptneox", {{"use_parallel_residual", false}}},
      {"roberta", "roberta", "bert"},
      {"xlm_roberta", "xlm_roberta", "bert"},
      {"distilbert", "distilbert", "bert"},
      // settings of rotary positions
      {"linear",
       llama,
       "llama",
       rope("linear", {{"factor", 2.5}}),
       {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 2.5f}}},
      {"factor_alone", llama, "llama", rope("linear", {{"factor", 2.5}}), {{"rope.scaling.factor", 2.5f}}},
      {"old_factor", llama, "llama", rope("linear", {{"factor", 2.5}}), {{"rope.scale_linear", 2.5f}}},
      {"none",
       llama,
       "llama",
       rope("default", nlohmann::json::object()),
       {{"rope.scaling.type", "none"}, {"rope.scaling.factor", 2.5f}}},
      {"no_factor", llama, "llama", rope("default", nlohmann::json::object()), {{"rope.scaling.factor", 0.f}}},
      {"yarn",
       llama,
       "llama",
       rope("yarn", yarn),
       {{"rope.scaling.type", word},
        {"rope.scaling.factor", 4.f},
        {"rope.scaling.original_context_length", uint32_t{16}},
        {"rope.scaling.yarn_ext_factor", 1.f},
        {"rope.scaling.finetuned", true}}},
      {"yarn_ramp",
       llama,
       "llama",
       rope("yarn", ramp),
       {{"rope.scaling.type", word},
        {"rope.scaling.factor", 4.f},
        {"rope.scaling.original_context_length", uint32_t{16}},
        {"rope.scaling.yarn_beta_fast", 4.f},
        {"rope.scaling.yarn_beta_slow", 0.5f}}},
      {"yarn_given",
       llama,
       "llama",
       rope("yarn", given),
       {{"rope.scaling.type", word},
        {"rope.scaling.factor", 4.f},
        {"rope.scaling.original_context_length", uint32_t{16}},
        {"rope.scaling.yarn_attn_factor", 1.5f}}},
      {"yarn_whole_context",
       llama,
       "llama",
       rope("yarn", whole),
       {{"rope.scaling.type", word}, {"rope.scaling.factor", 4.f}}},
      {"longrope",
       "decoders/llama_longrope",
       "llama",
       rope("longrope", {{"factor", 4},
                         {"original_max_position_embeddings", 16},
                         {"attention_factor", 1.25},
                         {"short_factor", {1.0, 1.125, 1.25, 1.5}},
                         {"long_factor", {1.0, 1.5, 2.0, 3.0}}}),
       {{"rope.scaling.type", "longrope"},
        {"rope.scaling.attn_factor", 1.25f},
        {"rope.scaling.original_context_length", uint32_t{16}}}},
  };
}

void add_long_factors(Gguf& file) {
  for (const auto& [name, values] : {std::pair("short", std::vector<float>{1, 1.125f, 1.25f, 1.5f}),
                                     std::pair("long", std::vector<float>{1, 1.5f, 2, 3})}) {
    tensor::Tensor factors(tensor::Shape{4});
    std::ranges::copy(values, factors.as<float>().begin());
    file.tensors.emplace(fmt::format("rope_factors_{}.weight", name), std::move(factors));
  }
}

class GgufTwin : public testing::TestWithParam<Twin> {};

TEST_P(GgufTwin, ComputesTheSameBits) {
  Gguf file = gguf_of(GetParam());
  if (GetParam().name == "longrope") add_long_factors(file);
  EXPECT_EQ(furthest(hub_of(GetParam()).load(), file.load()), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, GgufTwin, testing::ValuesIn(twins()),
                         [](const auto& twin) { return twin.param.name; });

// Q8_0 beside F32 that holds the same values.
TEST(GgufQuantised, ComputesWhatTheValuesOfItsBlocksCompute) {
  for (const Twin& twin : twins()) {
    if (twin.name != "gpt2" && twin.name != "gpt_neox" && twin.name != "roberta" && twin.name != "distilbert") continue;
    Gguf blocks = gguf_of(twin), plain = gguf_of(twin);
    blocks.quantised = true;
    double moved = 0;
    for (auto& [name, values] : plain.tensors) {
      if (!twin::in_blocks(values)) continue;
      const std::string bytes = twin::q8_0(values.as<float>());
      const tensor::Tensor before = tensor::clone(values);
      tensor::decode_blocks(tensor::BlockType::q8_0, std::as_bytes(std::span(bytes)), values.as<float>());
      moved = std::max(moved, tensor::compare(values, before).max_abs);
    }
    EXPECT_GT(moved, 1e-4) << twin.name;
    EXPECT_LE(furthest(plain.load(), blocks.load()), 1e-5) << twin.name;
  }
}

}  // namespace
}  // namespace clearhead::model
