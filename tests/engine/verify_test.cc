// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/engine/random_model.h"
#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using capture::Selection;
using capture::Stage;
using capture::Trace;
using tests::error_text;
using tests::everything;
using tests::random_model;
using tests::record;

constexpr size_t kSeq = 6;

struct Model {
  std::string name;
  model::ModelConfig config;
};

std::vector<Model> models() {
  model::ModelConfig bent = tests::encoder_config();
  bent.activation = linear::Activation::silu;
  model::ModelConfig clipped = tests::encoder_config();
  clipped.activation = linear::Activation::relu;
  clipped.norm_placement = model::NormPlacement::none;
  model::ModelConfig straight = tests::decoder_config();
  straight.activation = linear::Activation::none;
  straight.attention.causal = attention::Causal::offset;
  straight.attention.key_offset = 2;
  model::ModelConfig windowed = tests::encoder_config();
  windowed.attention.left_window = 2;
  windowed.attention.right_window = 1;
  windowed.attention.soft_cap = 1.5f;
  model::ModelConfig biased = tests::decoder_config();
  biased.attention.alibi_slopes = {0.5f, 0.25f, 0.125f, 3.0f};
  biased.attention.sinks = {0.5f, -1.0f, 4.0f, -std::numeric_limits<float>::infinity()};
  model::ModelConfig all = biased;
  all.attention.left_window = 3;
  all.attention.soft_cap = 0.75f;
  model::ModelConfig around = tests::rotary_config();
  around.norm_placement = model::NormPlacement::around;
  around.head_norm = false;
  around.embedding_scale = 4.5f;
  around.logit_soft_cap = 2.0f;
  around.attention.soft_cap = 1.5f;
  around.near = {};
  model::ModelConfig parallel = tests::rotary_config();
  parallel.norm_kind = model::NormKind::layer;
  parallel.gated = parallel.head_norm = false;
  parallel.parallel_halves = true;
  parallel.rotary->dim = 2;
  parallel.rotary->layout = kernels::RotaryLayout::interleaved;
  return {{"rotary, gated, near layers", tests::rotary_config()},
          {"norms around", around},
          {"parallel halves", parallel},
          {"windows and soft cap", windowed},
          {"ALiBi and sinks", biased},
          {"all behaviours", all},
          {"encoder", tests::encoder_config()},
          {"decoder", tests::decoder_config()},
          {"attention only", tests::attention_only_config()},
          {"silu", bent},
          {"relu without norms", clipped},
          {"no activation, offset", straight}};
}

std::string text_of(const StageCheck& check) {
  return fmt::format("{}: {} {} of {} at [{}], share {}", Trace::tensor_name(check.stage, check.layer),
                     check.skipped ? "skipped" : "largest difference", check.max_abs, check.tolerance,
                     fmt::join(check.at, ", "), check.worst_share);
}

std::string text_of(const VerifyReport& report) {
  std::string text;
  for (const StageCheck& check : report.stages) text += text_of(check) + "\n";
  return text;
}

const StageCheck& check_of(const VerifyReport& report, Stage stage, size_t layer) {
  for (const StageCheck& check : report.stages) {
    if (check.stage == stage && check.layer == layer) return check;
  }
  throw std::runtime_error("no such check");
}

size_t count_skipped(const VerifyReport& report) {
  size_t count = 0;
  for (const StageCheck& check : report.stages) count += check.skipped ? 1 : 0;
  return count;
}

// A copy in which one value of a stage is another.
Trace with_value(const Trace& trace, Stage stage, size_t layer, size_t at, float value) {
  Trace changed(trace.info());
  for (const capture::StageInfo& row : capture::stages()) {
    for (size_t l = 0; l < trace.info().num_layers; ++l) {
      if (!trace.has(row.stage, l)) continue;
      tensor::Tensor copy = tensor::clone(trace.tensor(row.stage, l));
      if (row.stage == stage && (l == layer || row.place != capture::Place::in_layer)) copy.as<float>()[at] = value;
      changed.add(row.stage, l, std::move(copy));
    }
  }
  return changed;
}

size_t flat(const std::vector<size_t>& index, const tensor::Shape& shape) {
  size_t result = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) result = result * shape[axis] + index[axis];
  return result;
}

// The names of what a report finds wrong.
std::set<std::string> over(const VerifyReport& report) {
  std::set<std::string> names;
  for (const StageCheck& check : report.stages) {
    if (check.worst_share > 1) names.insert(Trace::tensor_name(check.stage, check.layer));
  }
  return names;
}

// The stages that are recomputed from a stage, as the table's formulas say. {stage, layers further}
std::set<std::pair<Stage, size_t>> readers(Stage stage) {
  using enum Stage;
  static const std::map<Stage, std::set<std::pair<Stage, size_t>>> table = {
      {token_embedding, {{embedding, 0}}},
      {position_embedding, {{embedding, 0}}},
      {token_type_embedding, {{embedding, 0}}},
      {embedding, {{attention_input, 0}, {attention_block_output, 0}, {feed_forward_input, 0}}},
      {attention_input, {{query, 0}, {key, 0}, {value, 0}}},
      {query, {{raw_scores, 0}, {scores, 0}, {kernel_scores, 0}, {rotated_query, 0}}},
      {key, {{raw_scores, 0}, {scores, 0}, {kernel_scores, 0}, {rotated_key, 0}}},
      {rotated_query, {{raw_scores, 0}, {scores, 0}, {kernel_scores, 0}}},
      {rotated_key, {{raw_scores, 0}, {scores, 0}, {kernel_scores, 0}}},
      {value, {{head_output, 0}}},
      {kernel_scores, {{row_reference, 0}, {row_sum, 0}, {weights, 0}, {head_output, 0}}},
      {row_reference, {{row_sum, 0}}},
      {head_output, {{head_contribution, 0}, {attention_output, 0}}},
      {attention_output, {{attention_block_output, 0}}},
      {attention_block_output, {{feed_forward_input, 0}, {layer_output, 0}}},
      {feed_forward_input, {{feed_forward_hidden, 0}}},
      {feed_forward_hidden, {{feed_forward_output, 0}}},
      {feed_forward_output, {{layer_output, 0}}},
      {layer_output, {{attention_input, 1}, {attention_block_output, 1}, {feed_forward_input, 1}, {logits, 0}}}};
  const auto found = table.find(stage);
  return found == table.end() ? std::set<std::pair<Stage, size_t>>{} : found->second;
}

TEST(Verify, EveryStageOfEveryKindOfModelAgrees) {
  for (const Model& model : models()) {
    const model::Transformer transformer = random_model(model.config);
    for (size_t seq : {1, 2, 6}) {
      const VerifyReport report = verify(transformer, record(transformer, seq, everything()));
      EXPECT_TRUE(report.ok) << model.name << " " << seq << "\n" << text_of(report);
      EXPECT_EQ(count_skipped(report), 0u) << model.name << "\n" << text_of(report);
    }
  }
}

TEST(Verify, MoreKeysThanOneTileHoldsAgreeToo) {
  const model::Transformer transformer = random_model(tests::decoder_config());
  const Trace trace = record(transformer, 300, everything());
  for (const VerifyReport& report : {verify(transformer, trace), verify_end_to_end(transformer, trace)}) {
    EXPECT_TRUE(report.ok) << text_of(report);
    EXPECT_EQ(count_skipped(report), 0u);
  }
}

TEST(Verify, NamesAllStagesInTheOrderOfTheComputation) {
  const model::Transformer transformer = random_model(tests::encoder_config());
  const VerifyReport report = verify(transformer, record(transformer, kSeq, everything()));
  std::vector<std::string> names, expected;
  for (const StageCheck& check : report.stages) names.push_back(Trace::tensor_name(check.stage, check.layer));
  using enum Stage;
  for (Stage stage : {token_embedding, position_embedding, token_type_embedding, embedding}) {
    expected.push_back(Trace::tensor_name(stage, 0));
  }
  for (size_t layer : {0, 1}) {
    for (Stage stage : {attention_input, query, key, value, raw_scores, scores, kernel_scores, row_reference, row_sum,
                        weights, head_output, head_contribution, attention_output, attention_block_output,
                        feed_forward_input, feed_forward_hidden, feed_forward_output, layer_output}) {
      expected.push_back(Trace::tensor_name(stage, layer));
    }
  }
  EXPECT_EQ(names, expected);
}

TEST(Verify, AWrongValueInAnyStageIsFoundThereAndBlamedOnNobodyElse) {
  for (const Model& model : models()) {
    const model::Transformer transformer = random_model(model.config);
    const Trace trace = record(transformer, kSeq, everything());
    for (const StageCheck& check : verify(transformer, trace).stages) {
      const std::string name = Trace::tensor_name(check.stage, check.layer);
      const auto values = trace.tensor(check.stage, check.layer).as<float>();
      const size_t at = flat(check.at, trace.tensor(check.stage, check.layer).shape());
      float wrong = static_cast<float>(static_cast<double>(values[at]) + 2.1 * check.tolerance);
      if (check.tolerance == 0) wrong = std::nextafter(values[at], 1e30f);
      if (std::isinf(values[at])) wrong = 0;
      const VerifyReport report = verify(transformer, with_value(trace, check.stage, check.layer, at, wrong));
      EXPECT_FALSE(report.ok) << model.name << " " << name;
      std::set<std::string> found = over(report), may_be_found = {name};
      EXPECT_TRUE(found.contains(name)) << model.name << " " << name << "\n" << text_of(report);
      EXPECT_EQ(check_of(report, check.stage, check.layer).at, check.at) << model.name << " " << name;
      for (const auto& [stage, further] : readers(check.stage)) {
        may_be_found.insert(Trace::tensor_name(stage, check.layer + further));
      }
      for (const std::string& other : found) {
        EXPECT_TRUE(may_be_found.contains(other)) << model.name << ": " << name << " was wrong, not " << other;
      }
    }
  }
}

TEST(Verify, WhatIsNoNumberIsNeverRight) {
  const model::Transformer transformer = random_model(tests::decoder_config());
  const Trace trace = record(transformer, kSeq, everything());
  for (const StageCheck& check : verify(transformer, trace).stages) {
    for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const VerifyReport report = verify(transformer, with_value(trace, check.stage, check.layer, 0, value));
      EXPECT_FALSE(report.ok) << text_of(check);
      EXPECT_EQ(check_of(report, check.stage, check.layer).max_abs, std::numeric_limits<double>::infinity());
    }
  }
}

TEST(Verify, AMaskedKeyMustBeHiddenExactly) {
  const model::Transformer transformer = random_model(tests::decoder_config());
  const Trace trace = record(transformer, kSeq, everything());
  constexpr size_t kHidden = 1;  // head 0, query 0, key 1
  ASSERT_EQ(trace.tensor(Stage::weights, 1).as<float>()[kHidden], 0.0f);
  EXPECT_EQ(over(verify(transformer, with_value(trace, Stage::weights, 1, kHidden, 1e-9f))),
            (std::set<std::string>{"layers.1.weights"}));
  EXPECT_EQ(over(verify(transformer, with_value(trace, Stage::scores, 1, kHidden, -1e30f))),
            (std::set<std::string>{"layers.1.scores"}));
}

TEST(Verify, SomeHeadsAloneAreCheckedWhereTheyAreEnough) {
  for (const std::vector<size_t>& heads : {std::vector<size_t>{1, 3}, std::vector<size_t>{2}}) {
    for (const Model& model : models()) {
      const model::Transformer transformer = random_model(model.config);
      Selection selection = everything();
      selection.heads = heads;
      const VerifyReport report = verify(transformer, record(transformer, kSeq, selection));
      EXPECT_TRUE(report.ok) << model.name << "\n" << text_of(report);
      for (const StageCheck& check : report.stages) {
        EXPECT_EQ(check.skipped, check.stage == Stage::attention_output) << text_of(check);
      }
    }
  }
}

TEST(Verify, NoHeadsAtAllAreNothingToCheck) {
  const model::Transformer transformer = random_model(tests::encoder_config());
  Selection selection{{Stage::query, Stage::weights}, std::nullopt, std::vector<size_t>{}};
  const Trace trace = record(transformer, kSeq, selection);
  for (const VerifyReport& report : {verify(transformer, trace), verify_end_to_end(transformer, trace)}) {
    EXPECT_EQ(count_skipped(report), 4u) << text_of(report);
    EXPECT_FALSE(report.ok);
  }
}

TEST(Verify, AStageWithoutItsInputsIsSkippedAndNothingCheckedIsNotOk) {
  const model::Transformer transformer = random_model(tests::decoder_config());
  const auto checked = [&](std::vector<Stage> stages, std::optional<std::vector<size_t>> layers) {
    const VerifyReport report =
        verify(transformer, record(transformer, kSeq, {std::move(stages), std::move(layers), std::nullopt}));
    std::set<std::string> names;
    for (const StageCheck& check : report.stages) {
      if (!check.skipped) names.insert(Trace::tensor_name(check.stage, check.layer));
    }
    EXPECT_EQ(report.ok, !names.empty()) << text_of(report);
    return names;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(checked({Stage::weights, Stage::query, Stage::head_output, Stage::layer_output}, {}), Names{});
  EXPECT_EQ(checked({}, {}), Names{});
  EXPECT_EQ(checked({Stage::weights, Stage::kernel_scores}, {}), (Names{"layers.0.weights", "layers.1.weights"}));
  EXPECT_EQ(checked({Stage::weights, Stage::kernel_scores}, {{1}}), Names{"layers.1.weights"});
  EXPECT_EQ(checked({Stage::query, Stage::attention_input}, {{1}}), Names{"layers.1.query"});
  EXPECT_EQ(checked({Stage::attention_input, Stage::layer_output}, {}), Names{"layers.1.attention_input"});
  EXPECT_EQ(checked({Stage::embedding}, {}), Names{});
  EXPECT_EQ(checked({Stage::token_embedding}, {}), Names{"token_embedding"});
  EXPECT_EQ(checked({Stage::kernel_scores, Stage::row_sum}, {{0}}), Names{"layers.0.row_sum"});
}

TEST(Verify, OutsidePreNormBlocksACopyStandsForWhatItCopies) {
  const model::Transformer transformer = random_model(tests::encoder_config());
  const Trace trace = record(transformer, kSeq, {{Stage::embedding, Stage::query}, {{0}}, std::nullopt});
  EXPECT_TRUE(verify(transformer, trace).ok);
  EXPECT_FALSE(check_of(verify(transformer, trace), Stage::query, 0).skipped);
}

TEST(Verify, ATraceOfAnotherModelIsRefused) {
  const model::Transformer encoder = random_model(tests::encoder_config());
  const Trace trace = record(encoder, kSeq, everything());
  const auto complaint = [&](const auto& change) {
    model::ModelConfig config = tests::encoder_config();
    change(config);
    return error_text([&] { verify(random_model(config), trace); });
  };
  const std::string advice = "; name the model that the trace was made with";
  EXPECT_EQ(complaint([](auto& config) { config.num_layers = 3; }),
            "[verify] expected a trace of this model, with 3 layers; found 2" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.attention.num_heads = config.attention.num_kv_heads = 2; }),
            "[verify] expected a trace of this model, with 2 heads; found 4" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.attention.num_kv_heads = 2; }),
            "[verify] expected a trace of this model, with 2 kv heads; found 4" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.d_model = 24; }),
            "[verify] expected a trace of this model, with 24 d_model in token_embedding; found 20" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.d_ff = 0; }),
            "[verify] expected a trace of this model, with 0 d_ff in feed_forward_hidden; found 33" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.attention.head_dim = 6; }),
            "[verify] expected a trace of this model, with 6 head_dim in query; found 5" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.attention.value_dim = 6; }),
            "[verify] expected a trace of this model, with 6 value_dim in value; found 5" + advice);
  EXPECT_EQ(complaint([](auto& config) { config.context_len = 5; }),
            "[verify] expected a trace of this model, with at most 5 tokens; found 6");
  EXPECT_EQ(complaint([](auto& config) { config.vocab_size = 20; }),
            "[verify] expected a trace of this model, with token ids below 20; found 24 at token 3");
  EXPECT_EQ(complaint([](auto& config) { config.type_vocab_size = 1; }),
            "[verify] expected a trace of this model, with token types below 1; found 1 at token 1");
  EXPECT_EQ(error_text([&] { verify_end_to_end(random_model(tests::attention_only_config()), trace); }),
            "[verify] expected a trace of this model, with 1 layers; found 2" + advice);
}

TEST(Verify, ATraceThatDoesNotFitItselfIsRefused) {
  const model::Transformer encoder = random_model(tests::encoder_config());
  Trace trace = record(encoder, kSeq, {{Stage::embedding}, std::nullopt, std::nullopt});
  trace.add(Stage::weights, 0, tensor::Tensor({1, 4, kSeq, kSeq + 1}));
  EXPECT_EQ(error_text([&] { verify(encoder, trace); }),
            "[verify] expected \"layers.0.weights\" of shape [batch, heads, query, key] = [1, 4, 6, 6]; found "
            "[1, 4, 6, 7]");
}

TEST(Verify, EndToEndAgreesInEveryStage) {
  for (const Model& model : models()) {
    const model::Transformer transformer = random_model(model.config);
    for (size_t seq : {1, 6}) {
      const VerifyReport report = verify_end_to_end(transformer, record(transformer, seq, everything()));
      EXPECT_TRUE(report.ok) << model.name << " " << seq << "\n" << text_of(report);
      EXPECT_EQ(count_skipped(report), 0u) << model.name;
    }
  }
}

TEST(Verify, EndToEndNeedsNothingButTheTokens) {
  const model::Transformer transformer = random_model(tests::decoder_config());
  for (Stage stage : {Stage::weights, Stage::row_sum, Stage::row_reference, Stage::key, Stage::head_contribution}) {
    const Trace trace = record(transformer, kSeq, {{stage}, {{1}}, {{0, 3}}});
    const VerifyReport report = verify_end_to_end(transformer, trace);
    ASSERT_EQ(report.stages.size(), 1u);
    EXPECT_TRUE(report.ok) << text_of(report);
    EXPECT_FALSE(verify(transformer, trace).ok) << "its inputs are not there";
  }
}

TEST(Verify, EndToEndFindsAWrongValueInAnyStage) {
  for (const Model& model : models()) {
    const model::Transformer transformer = random_model(model.config);
    const Trace trace = record(transformer, kSeq, everything());
    for (const StageCheck& check : verify_end_to_end(transformer, trace).stages) {
      const std::string name = Trace::tensor_name(check.stage, check.layer);
      const auto values = trace.tensor(check.stage, check.layer).as<float>();
      const float wrong = std::isinf(values[0]) ? 0 : static_cast<float>(values[0] + 1.2 + 2.1 * check.tolerance);
      const VerifyReport report = verify_end_to_end(transformer, with_value(trace, check.stage, check.layer, 0, wrong));
      EXPECT_EQ(over(report), std::set<std::string>{name}) << model.name;
    }
  }
}

TEST(Verify, EndToEndTakesTheNextWholeNumberOnlyWhereTheLargestScoreIsThatClose) {
  // One query that sees one key; the model's own score is not near a whole number.
  const model::Transformer transformer = random_model(tests::decoder_config());
  const Trace trace = record(transformer, 1, everything());
  const float reference = trace.tensor(Stage::row_reference, 0).as<float>()[0];
  for (float step : {-1.0f, 1.0f}) {
    EXPECT_EQ(over(verify_end_to_end(transformer, with_value(trace, Stage::row_reference, 0, 0, reference + step))),
              std::set<std::string>{"layers.0.row_reference"});
  }
  const float sum = trace.tensor(Stage::row_sum, 0).as<float>()[0];
  EXPECT_EQ(over(verify_end_to_end(transformer, with_value(trace, Stage::row_sum, 0, 0, 2 * sum))),
            std::set<std::string>{"layers.0.row_sum"});
}

}  // namespace
}  // namespace clearhead::engine
