// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/bench_turns.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/memory.h"
#include "clearhead/base/output_file.h"
#include "clearhead/base/parallel.h"
#include "clearhead/engine/session.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/measure/attention_run.h"
#include "clearhead/measure/clock.h"
#include "clearhead/measure/decoder_run.h"
#include "clearhead/measure/encoder_run.h"
#include "clearhead/measure/peak.h"
#include "clearhead/measure/tokenizer_run.h"

namespace clearhead::apps {
namespace {

using nlohmann::json;

// What the last prepare left ready.
class Bench {
 public:
  json answer(const json& command) {
    if (command.contains("threads")) base::set_num_threads(command.at("threads").get<size_t>());
    if (command.contains("prepare")) return prepare(command);
    if (command.contains("memory")) return memory(evidence(command.at("memory")));
    return run(command);
  }

 private:
  json prepare(const json& command) {
    const auto what = command.at("prepare").get<std::string>();
    attention_.reset();
    encoder_.reset();
    tokenizer_.reset();
    decoder_.reset();
    peak_ = what == "peak";
    if (what == "attention") {
      prepare_attention(command);
    } else if (what == "encoder") {
      prepare_encoder(command);
    } else if (what == "tokenizer") {
      prepare_tokenizer(command);
    } else if (what == "decoder") {
      prepare_decoder(command);
    } else if (!peak_) {
      base::refuse("bench", "attention, encoder, decoder, tokenizer or peak to prepare", base::quoted(what));
    }
    return {{"ready", true}};
  }

  static format::SafetensorsFile open_inputs(const json& command) {
    const std::filesystem::path inputs = command.at("inputs").get<std::string>();
    base::refuse_to_replace("bench", command.at("outputs").get<std::string>(), {&inputs, 1});
    return format::SafetensorsFile::open(inputs);
  }

  void prepare_attention(const json& command) {
    const auto file = open_inputs(command);
    const auto shape = measure::AttentionShape::parse(command.at("shape").get<std::string>());
    attention_.emplace(shape, file.view("query"), file.view("key"), file.view("value"),
                       is_bf16(command) ? attention::Precision::bfloat16 : attention::Precision::single);
    if (!attention_->is_right()) base::fail("bench", "the bits of the exact path", "others", "please report it");
    const auto output = attention_->head_output();
    const tensor::TensorView view(tensor::DType::f32, {shape.batch, shape.query_len, shape.num_heads, shape.head_dim},
                                  std::as_bytes(output));
    const format::NamedTensor named[] = {{"head_output", view}};
    format::write_safetensors(command.at("outputs").get<std::string>(), named);
  }

  void prepare_encoder(const json& command) {
    const auto model = command.at("model").get<std::string>();
    if (!session_ || session_->name() != model) session_.emplace(engine::Session::open(model));
    const auto file = open_inputs(command);
    encoder_.emplace(*session_, file.view("ids"));
    encoder_->run();
    const format::NamedTensor named[] = {{"hidden", encoder_->hidden()}};
    format::write_safetensors(command.at("outputs").get<std::string>(), named);
  }

  // texts: a file with a JSON list of texts; outputs: for the list of their ids; tokenizer: for the tokenizer.json.
  void prepare_tokenizer(const json& command) {
    constexpr size_t kMostBytes = size_t{1} << 30;
    const std::string text = measure::tokenizer_json_of(command.at("model").get<std::string>());
    const std::filesystem::path texts_file = command.at("texts").get<std::string>();
    for (const char* made : {"tokenizer", "outputs"}) {
      base::refuse_to_replace("bench", command.at(made).get<std::string>(), {&texts_file, 1});
    }
    write_file(command.at("tokenizer").get<std::string>(), text);
    const std::string texts = base::read_file(texts_file, kMostBytes);
    tokenizer_.emplace(text::Tokenizer::from_json(text, "tokenizer"), json::parse(texts));
    write_file(command.at("outputs").get<std::string>(), json(tokenizer_->ids()).dump());
  }

  static void write_file(const std::string& path, const std::string& text) {
    base::OutputFile file(path);
    file.write(text);
    file.commit();
  }

  void prepare_decoder(const json& command) {
    const auto model = command.at("model").get<std::string>();
    if (!session_ || session_->name() != model) session_.emplace(engine::Session::open(model));
    const auto file = format::SafetensorsFile::open(command.at("inputs").get<std::string>());
    const auto shape = measure::DecoderShape::parse(command.at("shape").get<std::string>());
    decoder_.emplace(*session_, shape, file.view("ids"),
                     is_bf16(command) ? linear::Compute::bfloat16 : linear::Compute::single);
    decoder_->run();
    const format::NamedTensor named[] = {{"logits", decoder_->logits()}};
    format::write_safetensors(command.at("outputs").get<std::string>(), named);
  }

  static bool is_bf16(const json& command) {
    const auto precision = command.value("precision", std::string("f32"));
    if (precision == "f32" || precision == "bf16") return precision == "bf16";
    base::refuse("bench", "precision f32 or bf16", base::quoted(precision));
  }

  json run(const json& command) {
    if (peak_) {
      const measure::Peak peak = measure::measure_peak(base::num_threads());
      return {{"multiply_add_gflops", peak.multiply_add_gflops},
              {"exp2_giga", peak.exp2_giga},
              {"bf16_gflops", peak.bf16_gflops ? json(*peak.bf16_gflops) : json()}};
    }
    if (tokenizer_) {
      const bool offsets = command.at("run") == "tokens";
      const auto work = [&] { tokenizer_->run(offsets); };
      return {{"seconds", measure::median_seconds(work, command.at("seconds").get<double>())}};
    }
    if (decoder_) {
      const bool looks = command.at("run") == "looks";
      const auto work = [&] { decoder_->run(looks); };
      return {{"seconds", measure::median_seconds(work, command.at("seconds").get<double>())}};
    }
    const measure::Evidence wanted = evidence(command.at("run"));
    if (!attention_ && !encoder_) base::refuse("bench", "prepare before run", "nothing prepared");
    const auto work = [&] { attention_ ? attention_->run(wanted) : encoder_->run(); };
    return {{"seconds", measure::median_seconds(work, command.at("seconds").get<double>())}};
  }

  json memory(measure::Evidence wanted) {
    if (!attention_) base::refuse("bench", "memory of attention", "another problem");
    const auto bytes = attention_->working_bytes(wanted);
    return {{"bytes", bytes ? json(*bytes) : json()}};
  }

  static measure::Evidence evidence(const json& name) {
    for (const measure::Evidence one : measure::kEvidence) {
      if (name == measure::name_of(one)) return one;
    }
    base::refuse("bench", "the name of evidence", base::quoted(name.dump()));
  }

  std::optional<engine::Session> session_;
  std::optional<measure::AttentionRun> attention_;
  std::optional<measure::EncoderRun> encoder_;
  std::optional<measure::TokenizerRun> tokenizer_;
  std::optional<measure::DecoderRun> decoder_;
  bool peak_ = false;
};

}  // namespace

void take_bench_turns() {
  Bench bench;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      write_output(bench.answer(json::parse(line)).dump() + "\n");
    } catch (const json::exception& error) {
      base::refuse("bench", "a JSON object with prepare, run or memory", base::quoted(line), error.what());
    }
  }
  base::check_interrupt();
}

}  // namespace clearhead::apps
