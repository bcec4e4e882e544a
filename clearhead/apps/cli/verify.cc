// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/table.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/base/error.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/toy.h"
#include "clearhead/format/known_models.h"

namespace clearhead::apps {
namespace {

struct Flags {
  TextFlags text;
  OutputFlags output;
  bool end_to_end = false;
};

// A trace, whatever the file is called; a name that ends so is one even if there is no such file.
bool is_trace_file(const TextFlags& flags) {
  std::error_code ignored;
  return flags.text &&
         (flags.text->ends_with(".safetensors") || std::filesystem::is_regular_file(*flags.text, ignored));
}

std::string place_of(const engine::StageCheck& check) {
  return check.skipped ? std::string() : fmt::format("[{}]", fmt::join(check.at, ", "));
}

nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

std::string report_json(const engine::VerifyReport& report) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const auto& check : report.stages) {
    const capture::StageInfo& stage = capture::info(check.stage);
    nlohmann::ordered_json row;
    row["stage"] = stage.name;
    row["layer"] = stage.place == capture::Place::in_layer ? nlohmann::ordered_json(check.layer) : nullptr;
    row["max_abs"] = check.skipped ? nullptr : number_or_null(check.max_abs);
    row["tolerance"] = check.skipped ? nullptr : number_or_null(check.tolerance);
    row["worst_share"] = check.skipped ? nullptr : number_or_null(check.worst_share);
    row["at"] = check.at;
    row["skipped"] = check.skipped;
    stages.push_back(std::move(row));
  }
  nlohmann::ordered_json document;
  document["stages"] = std::move(stages);
  document["ok"] = report.ok;
  return document.dump();
}

// A row for each stage: the layer that comes nearest to what is allowed.
std::vector<engine::StageCheck> worst_per_stage(const engine::VerifyReport& report) {
  std::vector<engine::StageCheck> rows;
  for (const auto& check : report.stages) {
    auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.stage == check.stage; });
    if (same == rows.end()) {
      rows.push_back(check);
      continue;
    }
    if (!check.skipped && (same->skipped || check.worst_share > same->worst_share)) *same = check;
  }
  std::ranges::sort(rows, {}, &engine::StageCheck::stage);
  return rows;
}

std::string report_table(const engine::VerifyReport& report, const views::Style& style) {
  Table table(
      {{"stage", 22}, {"difference", 10, true}, {"allowed", 9, true}, {"share", 9, true}, {"layer", 5, true}, {"at"}});
  size_t checked = 0;
  for (const auto& check : report.stages) checked += check.skipped ? 0 : 1;
  for (const auto& check : worst_per_stage(report)) {
    const capture::StageInfo& stage = capture::info(check.stage);
    if (check.skipped) {
      table.add({std::string(stage.name), "skipped: what it is computed from was not recorded"});
      continue;
    }
    const std::string layer = stage.place == capture::Place::in_layer ? std::to_string(check.layer) : "-";
    const bool over = check.worst_share > 1;
    const double difference = check.tolerance > 0 ? check.worst_share * check.tolerance : check.max_abs;
    table.add({std::string(stage.name), fmt::format("{:.3g}", difference), fmt::format("{:.3g}", check.tolerance),
               fmt::format("{:.1f} %", 100 * check.worst_share), layer, place_of(check) + (over ? "  OVER" : "")});
  }
  const std::string ending = fmt::format(
      "{} stages of all layers recomputed in double by the plain reference: {}. Each row shows the place where its "
      "stage comes nearest to what is allowed there.",
      checked, report.ok ? "ok" : "NOT ok");
  return table.draw(style) + "\n" + wrapped("", ending, style);
}

[[noreturn]] void fail_report(const engine::VerifyReport& report) {
  for (const auto& check : report.stages) {
    if (check.worst_share <= 1) continue;
    const std::string name = capture::Trace::tensor_name(check.stage, check.layer);
    base::fail("verify", "every stage within its tolerance", fmt::format("{} over it at {}", name, place_of(check)));
  }
  base::fail("verify", "at least one stage whose inputs were recorded too", "none",
             "record --stages all, or verify --end-to-end");
}

// The model that a trace names. A path is looked for as it stands and, unless it is absolute, from the folder of the
// trace. Throws: Error that says what to do if it is nowhere.
std::string model_of(const capture::Trace& trace, const std::filesystem::path& trace_path) {
  const std::string& name = trace.info().model;
  if (engine::ToyConfig::parse(name) || format::find_known_model(name) != nullptr) return name;
  const std::filesystem::path beside = trace_path.parent_path() / name;
  for (const std::string& place : {name, beside.string()}) {
    try {
      format::resolve_model(place);
      return place;
    } catch (const base::Error&) {  // the next place, or what is said below
    }
  }
  base::fail("verify", fmt::format("the model that the trace was recorded with, {}", base::quoted(name, 400)),
             "none that can be opened under that name, from here or from the folder of the trace",
             "name it with --model");
}

// What to check: a trace from a file, or a run of the text with every stage recorded.
struct Subject {
  engine::Session session;
  capture::Trace trace;
};

Subject subject_of(const Flags& flags) {
  if (is_trace_file(flags.text)) {
    capture::Trace trace = capture::Trace::read(*flags.text.text);
    engine::Session session =
        open_session(flags.text.model.empty() ? model_of(trace, *flags.text.text) : flags.text.model);
    const model::Transformer& model = session.transformer();
    const engine::RunBytes bytes{model.resident_bytes(), 0, engine::verify_bytes(model, trace.info().tokens.size())};
    session.check_memory(bytes.total(), flags.text.run_options());
    return {std::move(session), std::move(trace)};
  }
  if (flags.text.lines) base::refuse("verify", "one text", "--lines");
  const std::string text = flags.text.texts().front();
  engine::Session session = open_session(flags.text.model, {text});
  capture::Selection selection;
  selection.stages = capture::parse_stages("all");
  const auto afterwards = [&](size_t seq_len) { return engine::verify_bytes(session.transformer(), seq_len); };
  capture::Trace trace = watch(session, text, selection, flags.text, afterwards);
  return {std::move(session), std::move(trace)};
}

void run(const Flags& flags) {
  const views::Style style = flags.output.apply();
  const Subject subject = subject_of(flags);
  const engine::VerifyReport report = [&] {
    const Progress progress("recomputing in double");
    return flags.end_to_end ? engine::verify_end_to_end(subject.session, subject.trace)
                            : engine::verify(subject.session, subject.trace);
  }();
  write_output(flags.output.json ? report_json(report) + "\n" : report_table(report, style));
  if (!report.ok) fail_report(report);
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *program.add_subcommand("verify", "Recompute every stage in double and show the largest difference");
  command.footer(
      "TEXT may also be a trace.safetensors that `clearhead record` wrote; its model is looked for as the trace names "
      "it, from here and from the folder of the trace, unless --model names it. Exit code 1 if a stage is over its "
      "tolerance.");
  add_text_flags(command, flags->text);
  command.add_flag("--end-to-end", flags->end_to_end,
                   "recompute from the token ids instead of from the recorded inputs of each stage");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
