// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/json.h"

namespace clearhead::apps {
namespace {

struct Flags {
  TextFlags text;
  OutputFlags output;
  std::optional<size_t> layer;
};

void run(const Flags& flags) {
  const views::Style style = flags.output.apply();
  const engine::Session session = open_session(flags.text.model, flags.text.texts());
  capture::Selection selection;
  selection.stages = {capture::Stage::weights};
  if (flags.layer) selection.layers = {check_index("--layer", *flags.layer, session.config().num_layers)};
  watch_each(session, selection, flags.text, flags.output.json, [&](const capture::Trace& trace) {
    const auto heads = views::summarize_heads(trace);
    if (flags.output.json) return views::attend_json(trace, heads, {});
    return views::draw_head_table(trace, heads, style);
  });
}

}  // namespace

void add_heads(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("heads", "Show what each head does, a row per head");
  command.footer(std::string(views::kind_rules()));
  add_text_flags(command, flags->text);
  command.add_option("--layer", flags->layer, "only this layer")->check(whole_number)->type_name("L");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
