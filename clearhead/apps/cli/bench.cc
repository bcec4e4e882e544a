// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "clearhead/apps/cli/bench_report.h"
#include "clearhead/apps/cli/bench_turns.h"
#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"
#include "clearhead/base/output_file.h"
#include "clearhead/base/parallel.h"
#include "clearhead/base/target.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/measure/attention_run.h"

namespace clearhead::apps {
namespace {

constexpr size_t kTextBytes = 1'000'000, kQuickTextBytes = 20'000;
constexpr double kQuickOperations = 1e8;  // of a shape that --quick measures
constexpr const char* kMemoryShape = "1x9/3 16384 64 causal";
constexpr const char* kQuickMemoryShape = "1x9/3 512 64 causal";

struct Flags {
  std::string what, model, target, output_file;
  std::vector<std::string> shapes;
  bool quick = false, turns = false;
  OutputFlags output;

  bool measures(const char* part) const { return what.empty() || what == part; }
};

std::vector<measure::AttentionShape> attention_shapes(const Flags& flags) {
  std::vector<measure::AttentionShape> shapes;
  for (const std::string& text : flags.shapes) shapes.push_back(measure::AttentionShape::parse(text));
  if (!shapes.empty()) return shapes;
  for (const measure::AttentionShape& shape : measure::attention_shapes()) {
    if (!flags.quick || shape.operations() < kQuickOperations) shapes.push_back(shape);
  }
  return shapes;
}

std::vector<measure::EncoderShape> encoder_shapes(const Flags& flags, const engine::Session& session) {
  const size_t context_len = session.config().context_len;
  std::vector<measure::EncoderShape> shapes;
  for (const std::string& text : flags.shapes) shapes.push_back(measure::EncoderShape::parse(text));
  if (!shapes.empty()) return shapes;
  for (const measure::EncoderShape& shape : measure::encoder_shapes()) {
    if (context_len != 0 && shape.seq_len > context_len) continue;
    if (!flags.quick || shape.tokens() < 64) shapes.push_back(shape);
  }
  return shapes;
}

std::vector<measure::DecoderShape> decoder_shapes(const Flags& flags, const engine::Session& session) {
  std::vector<measure::DecoderShape> shapes;
  for (const std::string& text : flags.shapes) shapes.push_back(measure::DecoderShape::parse(text));
  if (!shapes.empty()) return shapes;
  if (flags.quick) return {{false, 24}, {true, 8}};
  const size_t context_len = session.config().context_len;
  for (const measure::DecoderShape& shape : measure::decoder_shapes()) {
    if (context_len == 0 || shape.context + measure::kDecodedTokens <= context_len) shapes.push_back(shape);
  }
  return shapes;
}

// The model that is measured as a decoder: the one that was named, if decoders alone are measured, or the one that
// writes; none if all is measured and it is not here.
std::optional<engine::Session> decoder_session(const Flags& flags) {
  if (!flags.measures("decoder")) return std::nullopt;
  if (flags.what.empty()) {
    const format::KnownModel* writer = format::find_known_model(kWriter);
    if (writer == nullptr || !format::present(*writer)) return std::nullopt;
    note(fmt::format("model {} for the decoder (choose another with bench decoder --model)", kWriter));
    return engine::Session::open(kWriter);
  }
  return engine::Session::open(writer_or_default(flags.model));
}

void check(const Flags& flags) {
  if (!flags.shapes.empty() && (flags.what.empty() || flags.what == "tokenizer")) {
    base::refuse("command line", "--shape with attention, encoder or decoder", "it without");
  }
  if (!flags.target.empty()) base::force_simd_target(flags.target);
}

void write_file(const std::string& path, const std::string& text) {
  base::OutputFile file(path);
  file.write(text);
  file.commit();
}

// What is measured is read from files that no result may replace.
void check_output(const Flags& flags, const std::vector<std::filesystem::path>& sources) {
  if (!flags.output_file.empty()) base::refuse_to_replace("bench --output", flags.output_file, sources);
}

// The name of the model whose tokenizer is measured; empty if none is.
std::string tokenizer_model(const Flags& flags, const std::optional<engine::Session>& session) {
  if (!flags.measures("tokenizer")) return "";
  const std::string model = session ? session->name() : model_or_default(flags.model);
  check_output(flags, format::Checkpoint::open(format::resolve_model(model).path).files());
  return model;
}

measure::Report measure_all(const Flags& flags) {
  Progress progress("measuring");
  measure::Options options;
  if (const size_t most = base::num_threads(); most > 1) options.threads.push_back(most);
  if (flags.quick) options.effort = {.least_rounds = 1, .most_rounds = 1, .seconds = 0, .turn_seconds = 0.001};
  std::optional<engine::Session> session;
  std::vector<measure::EncoderShape> encoders;
  if (flags.measures("encoder")) {
    session.emplace(engine::Session::open(model_or_default(flags.model)));
    check_output(flags, session->files());
    encoders = encoder_shapes(flags, *session);
  }
  std::vector<measure::AttentionShape> attentions;
  if (flags.measures("attention")) attentions = attention_shapes(flags);
  const std::optional<engine::Session> writer = decoder_session(flags);
  std::vector<measure::DecoderShape> decoders;
  if (writer) {
    check_output(flags, writer->files());
    decoders = decoder_shapes(flags, *writer);
  }
  const std::string tokenizer = tokenizer_model(flags, session);
  const size_t steps = 1 + attentions.size() + encoders.size() + decoders.size();
  options.progress = [&progress, steps, done = size_t{0}]() mutable { progress.step(++done, steps); };

  measure::Report report;
  measure::measure_peaks(options, report);
  measure::measure_attention(attentions, options, report);
  if (!attentions.empty() && flags.shapes.empty()) {
    const auto shape = measure::AttentionShape::parse(flags.quick ? kQuickMemoryShape : kMemoryShape);
    measure::measure_attention_memory(shape, options, report);
  }
  if (session) measure::measure_encoder(*session, encoders, options, report);
  if (writer) measure::measure_decoder(*writer, decoders, options, report);
  if (!tokenizer.empty()) {
    measure::measure_tokenizer(tokenizer, flags.quick ? kQuickTextBytes : kTextBytes, options, report);
  }
  return report;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("bench", "Measure how fast this machine does it, beside its peak");
  command.add_option("what", flags->what, "attention, encoder, decoder or tokenizer (default: all)")
      ->check(CLI::IsMember({"attention", "encoder", "decoder", "tokenizer"}))
      ->type_name("WHAT");
  add_model_flag(command, flags->model);
  command
      .add_option("--shape", flags->shapes,
                  "this shape instead: \"1x9/3 512 64 causal\" (batch x heads / kv heads, length, head size) or, of an "
                  "encoder, 8x128 or, of a decoder, \"prompt 512\" or \"decode 512\"; may be said again")
      ->type_name("S");
  command.add_option("--target", flags->target, "SIMD target of the kernels, such as AVX2 (default: the best)")
      ->type_name("NAME");
  command.add_flag("--quick", flags->quick, "small shapes, one round: whether it works, not how fast");
  command.add_option("--output", flags->output_file, "write the JSON document into a file as well")->type_name("FILE");
  command.add_flag("--turns", flags->turns, "take turns with another program: commands from standard input, as JSON");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] {
    action = [flags] {
      flags->output.apply();
      check(*flags);
      if (flags->turns) return take_bench_turns();
      const measure::Report report = measure_all(*flags);
      const measure::Machine machine = measure::describe_machine();
      if (!flags->output_file.empty()) write_file(flags->output_file, bench_json(machine, report) + "\n");
      write_output(flags->output.json ? bench_json(machine, report) + "\n" : bench_page(machine, report));
    };
  });
}

}  // namespace clearhead::apps
