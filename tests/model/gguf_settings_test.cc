// SPDX-License-Identifier: Apache-2.0
// Settings of GGUF files: each is used, refused by its name, or of no effect whatever it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "clearhead/tensor/compare.h"
#include "tests/model/gguf_twin.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using twin::Gguf;
using twin::Hub;
using twin::Setting;

Gguf llama() { return twin::gated(Hub("decoders/llama"), "llama"); }

Gguf llama_with(const twin::Settings& settings) {
  Gguf file = llama();
  for (const auto& [key, setting] : settings) file.settings[key] = setting;
  return file;
}

void expect_complaint(const Gguf& file, const std::string& text) {
  const std::string found = file.complaint();
  EXPECT_NE(found.find(text), std::string::npos) << found;
  EXPECT_EQ(found.find('\n'), std::string::npos) << found;
}

tensor::Tensor list(const std::vector<float>& values) {
  tensor::Tensor numbers(tensor::Shape{values.size()});
  std::ranges::copy(values, numbers.as<float>().begin());
  return numbers;
}

tensor::Tensor hidden_of(const LoadedModel& model) {
  const std::vector<int64_t> ids = {3, 7, 0, 41, 7, 12, 30, 2, 9, 9, 8, 22};
  return model.transformer.run({ids, {}});
}

// What llama.cpp multiplies cosines and sines by: rope.scaling.attn_factor, and what yarn implies.
TEST(GgufRotary, TheAttentionFactorMultiplies) {
  const double implied = 0.1 * std::log(4.0) + 1;
  const twin::Settings yarn = {{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 4.f}};
  const auto factor_of = [](twin::Settings settings, const Setting& attention) {
    settings["rope.scaling.attn_factor"] = attention;
    return llama_with(settings).load().transformer.config().rotary->effective_attention_factor();
  };
  EXPECT_DOUBLE_EQ(factor_of(yarn, 1.f), implied);
  EXPECT_DOUBLE_EQ(factor_of(yarn, 0.5f), 0.5 * implied);
  twin::Settings given = yarn;
  given["rope.scaling.yarn_attn_factor"] = 3.f;
  EXPECT_DOUBLE_EQ(factor_of(given, 0.5f), 1.5);
  EXPECT_DOUBLE_EQ(factor_of({{"rope.scaling.factor", 4.f}}, 0.5f), 0.5);
  EXPECT_DOUBLE_EQ(factor_of({{"rope.scaling.type", "none"}}, 0.5f), 0.5);
}

TEST(GgufRotary, LongropeHasItsFactorsAsTensors) {
  Gguf file = llama_with({{"rope.scaling.type", "longrope"}});
  const std::string where = "expected rope_factors_long.weight and rope_factors_short.weight with rope.scaling.type ";
  expect_complaint(file, where + "longrope; found neither");
  file.tensors.emplace("rope_factors_long.weight", list({2, 3, 4}));
  expect_complaint(file, where + "longrope; found one of them");
  file.tensors.emplace("rope_factors_short.weight", list({1, 1.5f, 1.25f}));
  const RotaryConfig plain = *file.load().transformer.config().rotary;
  EXPECT_EQ(plain.short_factors, (std::vector<double>{1, 1.5, 1.25}));
  EXPECT_EQ(plain.long_factors, (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(plain.original_len, 64u);  // of the context, where nothing else is said
  EXPECT_EQ(plain.effective_attention_factor(), 1);
  file.settings["rope.scaling.factor"] = 2.f;
  EXPECT_EQ(file.load().transformer.config().rotary->long_factors, (std::vector<double>{4, 6, 8}));
  for (const float bad : {0.f, -1.f, std::numeric_limits<float>::quiet_NaN()}) {
    file.tensors.insert_or_assign("rope_factors_long.weight", list({2, bad, 4}));
    expect_complaint(file, "expected factors of longrope above 0");
  }
  file.tensors.insert_or_assign("rope_factors_long.weight", list({2, 3}));
  expect_complaint(file, "expected 3 factors of longrope; found 2");
  file.settings.erase("rope.scaling.type");
  expect_complaint(file, "expected rope.scaling.type longrope beside rope_factors_long.weight; found another or none");
}

// Llama 3 has the three bands of its frequencies as divisors.
TEST(GgufRotary, DivisorsAreThoseOfLlama3AndAboveZero) {
  const Hub hub("decoders/llama_llama3");
  Gguf file = twin::gated(hub, "llama");
  std::vector<float> divisors;
  for (size_t i = 0; i < 8; ++i) {  // factor 8, from 32 positions, bands 1 and 4
    const double turns = 32 * std::pow(100.0, -2.0 * static_cast<double>(i) / 16) / (2 * 3.14159265358979323846);
    const double smooth = std::clamp((turns - 1) / 3, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - smooth) / 8 + smooth)));
  }
  EXPECT_GT(std::abs(tensor::compare(hidden_of(file.load()), hidden_of(hub.load())).max_abs), 1e-3);
  file.tensors.emplace("rope_freqs.weight", list(divisors));
  const LoadedModel model = file.load();
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_LE(tensor::compare(hidden_of(model), hidden_of(hub.load())).max_abs, 1e-5);
  for (const auto& [bad, text] :
       {std::pair(0.f, "0"), {-1.f, "-1"}, {std::nanf(""), "nan"}, {std::numeric_limits<float>::infinity(), "inf"}}) {
    divisors[3] = bad;
    file.tensors.insert_or_assign("rope_freqs.weight", list(divisors));
    expect_complaint(file, fmt::format("expected \"rope_freqs.weight\" of numbers above 0; found {}; the file", text));
  }
}

TEST(GgufRotary, WhatIsNotComputedIsRefusedByName) {
  expect_complaint(llama_with({{"rope.scaling.type", "spiral"}}),
                   "expected \"llama.rope.scaling.type\" to be one of: none, linear, yarn, longrope; found \"spiral\"");
  expect_complaint(llama_with({{"rope.scaling.type", "yarn"}, {"rope.scaling.yarn_ext_factor", 0.5f}}),
                   "expected rope.scaling.yarn_ext_factor of 1; found 0.5");
  for (const char* key :
       {"rope.scaling.alpha", "rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_attn_factor",
        "rope.dimension_sections", "attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale"}) {
    expect_complaint(llama_with({{key, 2.f}}),
                     fmt::format("expected keys that this model family knows; found \"llama.{}\"", key));
  }
}

TEST(GgufSettings, GivenForEachLayerAreTheSameInAll) {
  const tensor::Tensor truth = hidden_of(llama().load());
  const Gguf uniform = llama_with({{"attention.head_count", std::vector<int32_t>{4, 4}},
                                   {"attention.head_count_kv", std::vector<int32_t>{2, 2}},
                                   {"feed_forward_length", std::vector<int32_t>{40, 40}}});
  EXPECT_TRUE(tensor::same_bits(hidden_of(uniform.load()), truth));
  for (const char* key : {"attention.head_count", "attention.head_count_kv", "feed_forward_length"}) {
    expect_complaint(llama_with({{key, std::vector<int32_t>{4, 2}}}),
                     fmt::format("expected \"llama.{}\" that is the same in every layer; found 4 in layer 0 and 2 in "
                                 "layer 1; this kind of model is not supported",
                                 key));
    expect_complaint(llama_with({{key, std::vector<int32_t>{4}}}),
                     fmt::format("expected \"llama.{}\" once or for each of 2 layers; found 1 numbers", key));
    expect_complaint(llama_with({{key, std::vector<int32_t>{-4, -4}}}), "of 0 or more; found -4");
  }
}

TEST(GgufSettings, SayWhetherATokenSeesThoseBehindIt) {
  EXPECT_EQ(llama_with({{"attention.causal", true}}).complaint(), "no error");
  EXPECT_EQ(llama_with({{"attention.causal", uint32_t{1}}}).complaint(), "no error");
  expect_complaint(llama_with({{"attention.causal", false}}), "expected attention.causal to be true; found false");
  Gguf encoder = twin::bert(Hub("roberta"));
  encoder.settings["attention.causal"] = true;
  expect_complaint(encoder, "expected attention.causal to be false; found true");
  encoder.settings.erase("attention.causal");
  expect_complaint(encoder, "expected attention.causal to be false; found true, which is what a file without it means");
}

TEST(GgufSettings, OfNoEffectAreTakenWhateverTheySay) {
  const tensor::Tensor truth = hidden_of(llama().load());
  const Gguf file = llama_with({{"pooling_type", uint32_t{3}},
                                {"vocab_size", uint32_t{7}},
                                {"rope.scaling.finetuned", true},
                                {"tensor_data_layout", "Meta AI original pth"},
                                {"expert_count", uint32_t{0}},
                                {"expert_used_count", uint32_t{0}},
                                {"embedding_length_out", uint32_t{24}}});
  EXPECT_TRUE(tensor::same_bits(hidden_of(file.load()), truth));
  expect_complaint(llama_with({{"expert_count", uint32_t{8}}}), "expected \"llama.expert_count\" of 0; found 8");
  expect_complaint(llama_with({{"nextn_predict_layers", uint32_t{1}}}), "\"llama.nextn_predict_layers\" of 0; found 1");
  expect_complaint(llama_with({{"embedding_length_out", uint32_t{8}}}),
                   "\"llama.embedding_length_out\" of 24; found 8");
  expect_complaint(llama_with({{"tensor_data_layout", "reference"}}), "found \"reference\"");
}

// The largest size of both families has a scale of its own, which no key says; all others have that of their heads.
TEST(GemmaGguf, OfTheLargestSizeDividesByWidthAndHeads) {
  for (const auto& size : {std::pair("gemma2", 46u), {"gemma3", 62u}}) {
    const std::string name = size.first;
    const uint32_t largest = size.second;
    const Hub hub(fmt::format("decoders/{}", name));
    const auto scale_of = [&](uint32_t layers, const twin::Settings& settings) {
      Gguf file = twin::gated(hub, name);
      for (const auto& [key, setting] : settings) file.settings[key] = setting;
      file.settings["block_count"] = layers;
      twin::Tensors more;
      for (const auto& [tensor, values] : file.tensors) {
        if (!tensor.starts_with("blk.0.")) continue;
        for (uint32_t i = 3; i < layers; ++i)
          more.emplace(fmt::format("blk.{}.{}", i, tensor.substr(6)), tensor::clone(values));
      }
      file.tensors.merge(more);
      return file.load().transformer.config().attention.effective_scale();
    };
    EXPECT_FLOAT_EQ(scale_of(3, {}), 1 / std::sqrt(8.f)) << name;
    EXPECT_FLOAT_EQ(scale_of(largest, {}), 1 / std::sqrt(24.f / 4)) << name;
    EXPECT_FLOAT_EQ(scale_of(largest, {{"attention.scale", 0.25f}}), 0.25f) << name;
  }
}

TEST(GemmaGguf, SettingsOfNearLayers) {
  Gguf file = twin::gated(Hub("decoders/gemma2"), "gemma2");
  ModelConfig config = file.load().transformer.config();
  EXPECT_EQ(config.near.left_window, 4095u);
  EXPECT_EQ(config.near.is_near, (std::vector<bool>{true, false, true}));
  EXPECT_FALSE(config.near.rotary);
  EXPECT_EQ(config.attention.soft_cap, 50.f);
  EXPECT_EQ(config.logit_soft_cap, 30.f);
  file.settings["rope.freq_base_swa"] = 500.f;
  file.settings["attention.sliding_window_pattern"] = std::vector<int32_t>{0, 0, 1};
  config = file.load().transformer.config();
  EXPECT_EQ(config.near.is_near, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(config.near.rotary->base, 500);
  EXPECT_EQ(config.rotary->base, 10000);
  file.settings["attention.sliding_window_pattern"] = std::vector<bool>{true};
  expect_complaint(file, "expected attention.sliding_window_pattern of 3 layers; found 1");
  file.settings["attention.sliding_window_pattern"] = std::vector<int32_t>{0, 2, 1};
  expect_complaint(file, "with an array of true and false; found an array of 3 i32");
  file.settings.erase("attention.sliding_window_pattern");
  file.settings["attention.sliding_window"] = uint32_t{0};
  expect_complaint(file, "expected an attention.sliding_window of 1 or more; found 0");
  file.settings.erase("attention.sliding_window");
  file.settings["final_logit_softcapping"] = 0.f;
  expect_complaint(file, "expected a soft cap of logits above 0; found 0");
}

TEST(GgufTensors, ThatAreMissingAreMissedInTheFile) {
  Gguf file = twin::gpt2(Hub("gpt2"));
  const twin::Tensors whole = std::move(file.tensors);
  const tests::TemporaryFolder folder;
  const std::string place = (folder / "m.gguf").string();
  for (const auto& [missing, unused] : whole) {
    for (const auto& [name, values] : whole) {
      if (name != missing) file.tensors.insert_or_assign(name, tensor::clone(values));
    }
    file.tensors.erase(missing);
    tests::write_bytes(place, file.bytes());
    const auto load = [&] { load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(place))); };
    EXPECT_EQ(tests::error_text(load),
              fmt::format("[\"{}\"] expected a tensor \"{}\"; found {} tensors, none of that name", place, missing,
                          whole.size() - 1));
  }
}

}  // namespace
}  // namespace clearhead::model
