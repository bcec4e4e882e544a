// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/sampling_flags.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/apps/cli/writing_notes.h"
#include "clearhead/base/error.h"
#include "clearhead/engine/generate.h"

namespace clearhead::apps {
namespace {

struct Flags {
  TextFlags text;
  OutputFlags output;
  std::string stages = "all", layers, heads, path;
  engine::GenerateOptions writing{.max_tokens = 0};
};

std::string stage_names() {
  std::string names = "Stages:";
  for (const auto& row : capture::stages()) names += fmt::format(" {}", row.name);
  return names;
}

// The text and, if it is to be continued, what the model writes after it: one pass over both has the bits of the
// writing.
engine::TokenizedText text_of(const engine::Session& session, const std::string& text, const Flags& flags) {
  engine::TokenizedText tokens = read_text(session, text, flags.text);
  if (flags.writing.max_tokens == 0) return tokens;
  engine::GenerateOptions writing = flags.writing;
  writing.memory_limit = flags.text.run_options().memory_limit;
  const engine::Generated written = engine::generate(session, tokens, writing);
  report_non_finite_logits(written);
  report_context(session, written);
  return engine::whole_text(session, tokens, written);
}

void run(const Flags& flags) {
  flags.output.apply();
  if (flags.text.lines) base::refuse("record", "one text a trace", "--lines");
  if (!flags.path.ends_with(".safetensors")) {
    base::refuse("--output", "a name that ends in .safetensors", base::quoted(flags.path));
  }
  capture::Selection selection;
  selection.stages = capture::parse_stages(flags.stages);
  const std::string text = flags.text.texts().front();
  const engine::Session session = open_session(flags.text.model, flags.text.texts());
  const auto& config = session.config();
  for (capture::Stage stage : selection.stages) {
    if (flags.stages != "all" && !session.transformer().has(stage)) {
      base::refuse("--stages", fmt::format("stages that {} has", session.name()),
                   base::quoted(capture::info(stage).name));
    }
  }
  if (!flags.layers.empty()) selection.layers = capture::parse_index_set(flags.layers, "--layers", config.num_layers);
  if (!flags.heads.empty()) {
    selection.heads = capture::parse_index_set(flags.heads, "--heads", config.attention.num_heads);
  }
  refuse_to_replace_sources("record --output", flags.path, session, flags.text);
  const engine::Session::Recorded recorded =
      watch_into(session, text_of(session, text, flags), selection, flags.text, flags.path);
  if (flags.output.json) {
    const nlohmann::ordered_json result = {
        {"path", flags.path}, {"tokens", recorded.tokens}, {"bytes", recorded.bytes}};
    return write_output(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  note(fmt::format("{}: {} tokens, {} bytes of tensors", base::quoted(flags.path), recorded.tokens, recorded.bytes));
}

}  // namespace

void add_record(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("record", "Write what was seen to a trace, a safetensors file");
  command.footer(stage_names());
  add_text_flags(command, flags->text);
  command.add_option("--stages", flags->stages, "stages to keep, separated by commas (default: all)")->type_name("A,B");
  command.add_option("--layers", flags->layers, "layers to keep, such as 0-3,5 (default: all)")->type_name("SET");
  command.add_option("--heads", flags->heads, "heads to keep, such as 1,5 (default: all)")->type_name("SET");
  command
      .add_option("--max-tokens", flags->writing.max_tokens,
                  "let the model continue the text by at most N tokens and record both (default 0)")
      ->check(whole_number)
      ->type_name("N");
  add_sampling_flags(command, flags->writing.sampling);
  command.add_option("--output", flags->path, "the file to write")->required()->type_name("FILE");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
