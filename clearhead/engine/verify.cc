// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/engine/generate.h"
#include "clearhead/engine/verify_compare.h"
#include "clearhead/engine/verify_layer_rows.h"
#include "clearhead/engine/verify_stages.h"

namespace clearhead::engine {
namespace {

using capture::Place;
using capture::Stage;
using capture::Trace;
using Values = std::vector<double>;

// The tokens that a trace must have: those of its text, or of its prompt and then those that the model chose, which
// need not be those of the text that they make.
TokenizedText tokens_again(const Session& session, const capture::TraceInfo& info) {
  if (info.written == 0 || info.tokens.empty()) return session.tokenize(info.text, true);
  const auto chosen = std::span(info.tokens).last(std::min(info.written, info.tokens.size()));
  const size_t prompt_bytes = std::min(chosen.front().begin, info.text.size());
  const TokenizedText prompt = session.tokenize(std::string_view(info.text).substr(0, prompt_bytes), true);
  Generated written;
  for (const capture::TraceToken& token : prompt.tokens) written.prompt_ids.push_back(token.id);
  for (const capture::TraceToken& token : chosen) written.ids.push_back(token.id);
  return whole_text(session, prompt, written);
}

// What says how the numbers came about: the attention of the model, and the tokens of the text.
void check_words(const Session& session, const capture::TraceInfo& info) {
  if (const std::string attention = session.config().attention_json(); info.attention != attention) {
    base::fail("verify", fmt::format("a trace with the attention of this model, {}", attention),
               base::quoted(info.attention), "name the model that the trace was made with");
  }
  const TokenizedText again = tokens_again(session, info);
  const auto same = [](const capture::TraceToken& a, const capture::TraceToken& b) {
    return a.id == b.id && a.piece == b.piece && a.text == b.text && a.begin == b.begin && a.end == b.end &&
           a.special == b.special;
  };
  if (again.text == info.text && std::ranges::equal(again.tokens, info.tokens, same)) return;
  base::fail("verify", "the tokens that the trace's text has in this model", "others");
}

void expect_count(std::string_view what, size_t expected, size_t found) {
  if (found == expected) return;
  base::fail("verify", fmt::format("a trace of this model, with {} {}", expected, what), fmt::format("{}", found),
             "name the model that the trace was made with");
}

void check_token(const model::Transformer& model, const capture::TraceToken& token, size_t place) {
  const auto check = [&](std::string_view what, int64_t id, size_t rows) {
    if (id >= 0 && static_cast<uint64_t>(id) < rows) return;
    base::fail("verify", fmt::format("a trace of this model, with {}s below {}", what, rows),
               fmt::format("{} at token {}", id, place));
  };
  check("token id", token.id, model.parameters().token_embedding.rows());
  const size_t types = model.parameters().token_type_embedding.rows();
  if (types != 0) check("token type", token.type_id, types);
}

// Sizes that the tokens and heads of the trace do not decide.
void check_sizes(const model::ModelConfig& config, Stage stage, const tensor::Shape& shape) {
  const std::map<std::string_view, size_t> sizes = {{"d_model", config.d_model},
                                                    {"d_ff", config.d_ff},
                                                    {"vocab", config.vocab_size},
                                                    {"head_dim", config.attention.head_dim},
                                                    {"value_dim", config.attention.value_dim}};
  const auto words = capture::axes(stage);
  for (size_t axis = 0; axis < words.size(); ++axis) {
    const auto size = sizes.find(words[axis]);
    if (size == sizes.end()) continue;
    expect_count(fmt::format("{} in {}", words[axis], capture::info(stage).name), size->second, shape[axis]);
  }
}

// Whether a stage was recorded or is rebuilt.
bool is_there(const Trace& trace, Stage stage, size_t layer) {
  return trace.has(stage, layer) || trace.shows(stage, layer);
}

// Calls visit(stage, layer) for all stages of all layers below num_layers, in the order of the computation.
template <class Visit>
void for_each_stage(size_t num_layers, const Visit& visit) {
  const auto all_at = [&](Place place, size_t layer) {
    for (const capture::StageInfo& row : capture::stages()) {
      if (row.place == place) visit(row.stage, layer);
    }
  };
  all_at(Place::before_layers, 0);
  for (size_t layer = 0; layer < num_layers; ++layer) all_at(Place::in_layer, layer);
  all_at(Place::after_layers, 0);
}

void check_fits(const model::Transformer& model, const Trace& trace) {
  trace.check("verify");
  const model::ModelConfig& config = model.config();
  const capture::TraceInfo& info = trace.info();
  expect_count("layers", config.num_layers, info.num_layers);
  expect_count("heads", config.attention.num_heads, info.num_heads);
  expect_count("kv heads", config.attention.num_kv_heads, info.num_kv_heads);
  if (config.context_len != 0 && info.tokens.size() > config.context_len) {
    base::fail("verify", fmt::format("a trace of this model, with at most {} tokens", config.context_len),
               fmt::format("{}", info.tokens.size()));
  }
  for (size_t i = 0; i < info.tokens.size(); ++i) check_token(model, info.tokens[i], i);
  for_each_stage(config.num_layers, [&](Stage stage, size_t layer) {
    if (trace.has(stage, layer)) check_sizes(config, stage, trace.tensor(stage, layer).shape());
  });
}

bool is_ok(const VerifyReport& report) {
  const bool all_in = std::ranges::all_of(report.stages, [](const StageCheck& c) { return c.worst_share <= 1; });
  return all_in && std::ranges::any_of(report.stages, [](const StageCheck& c) { return !c.skipped; });
}

StageCheck skipped(Stage stage, size_t layer) {
  StageCheck check{.stage = stage, .layer = layer};
  check.skipped = true;
  return check;
}

// Values by stage and layer, with no more layers kept than the computation reads.
class Store {
 public:
  const Values* find(Stage stage, size_t layer) const {
    const auto found = values_.find(key_of(stage, layer));
    return found == values_.end() ? nullptr : &found->second;
  }

  void keep(Stage stage, size_t layer, Values values) {
    values_.insert_or_assign(key_of(stage, layer), std::move(values));
  }

  // Of layers before layer, only the last one's layer_output is read.
  void leave_layers_before(size_t layer) {
    std::erase_if(values_, [layer](const auto& item) {
      return item.first.first < layer && (item.first.second != Stage::layer_output || item.first.first + 1 < layer);
    });
  }

 private:
  static std::pair<size_t, Stage> key_of(Stage stage, size_t layer) {
    return {capture::info(stage).place == Place::in_layer ? layer : 0, stage};
  }

  std::map<std::pair<size_t, Stage>, Values> values_;
};

// The recorded values in double, converted when they are first asked for.
class Recorded {
 public:
  explicit Recorded(const Trace& trace) : trace_(trace) {}

  const Values* find(Stage stage, size_t layer) {
    if (const Values* known = store_.find(stage, layer)) return known;
    if (!trace_.has(stage, layer)) return nullptr;
    const auto values = trace_.tensor(stage, layer).as<float>();
    store_.keep(stage, layer, Values(values.begin(), values.end()));
    return store_.find(stage, layer);
  }

  void leave_layers_before(size_t layer) { store_.leave_layers_before(layer); }

 private:
  const Trace& trace_;
  Store store_;
};

}  // namespace

VerifyReport verify(const model::Transformer& model, const Trace& trace) {
  check_fits(model, trace);
  Recorded recorded(trace);
  const capture::TraceInfo& info = trace.info();
  const StageInputs inputs{
      model,      info.tokens,     info.declared_len,
      info.heads, info.kv_heads(), [&](Stage stage, size_t layer) { return recorded.find(stage, layer); }};
  VerifyReport report;
  for_each_stage(info.num_layers, [&](Stage stage, size_t layer) {
    if (!is_there(trace, stage, layer)) return;
    base::check_interrupt();
    recorded.leave_layers_before(layer);
    if (is_of_rows(stage)) return report.stages.push_back(check_rows(inputs, trace, stage, layer));
    const tensor::TensorView found = trace.tensor(stage, layer);
    const auto expected = found.elements() == 0 ? std::nullopt : recompute(inputs, stage, layer);
    report.stages.push_back(expected ? compare(stage, layer, found, *expected) : skipped(stage, layer));
  });
  report.ok = is_ok(report);
  return report;
}

VerifyReport verify_end_to_end(const model::Transformer& model, const Trace& trace) {
  check_fits(model, trace);
  const capture::TraceInfo& info = trace.info();
  Store store;
  capture::TraceInfo whole = info;
  whole.heads.clear();
  for (size_t head = 0; head < info.num_heads; ++head) whole.heads.push_back(head);
  const StageInputs inputs{
      model,       info.tokens,      info.declared_len,
      whole.heads, whole.kv_heads(), [&](Stage stage, size_t layer) { return store.find(stage, layer); }};
  VerifyReport report;
  for_each_stage(info.layers.empty() ? 0 : info.layers.back() + 1, [&](Stage stage, size_t layer) {
    if (is_of_rows(stage)) {
      if (stage != Stage::raw_scores) return;  // the first of them: all are checked together
      store.leave_layers_before(layer);
      RowsEndToEnd rows = check_rows_end_to_end(inputs, trace, layer);
      report.stages.insert(report.stages.end(), rows.checks.begin(), rows.checks.end());
      return store.keep(Stage::head_output, layer, std::move(rows.head_output));
    }
    const bool wanted = trace.has(stage, layer);
    if (!wanted && is_only_shown(stage)) return;
    base::check_interrupt();
    if (capture::info(stage).place == Place::in_layer) store.leave_layers_before(layer);
    auto truth = recompute(inputs, stage, layer);
    if (truth && wanted && trace.tensor(stage, layer).elements() != 0) {
      report.stages.push_back(compare_drift(stage, layer, trace, *truth));
    } else if (wanted) {
      report.stages.push_back(skipped(stage, layer));
    }
    if (truth && !is_only_shown(stage)) store.keep(stage, layer, std::move(truth->values));
  });
  report.ok = is_ok(report);
  return report;
}

VerifyReport verify(const Session& session, const Trace& trace) {
  check_words(session, trace.info());
  return verify(session.transformer(), trace);
}

VerifyReport verify_end_to_end(const Session& session, const Trace& trace) {
  check_words(session, trace.info());
  return verify_end_to_end(session.transformer(), trace);
}

}  // namespace clearhead::engine
