// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/base/error.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/json.h"

namespace clearhead::apps {
namespace {

struct Flags {
  TextFlags text;
  OutputFlags output;
  std::optional<size_t> layer, head;
  std::string from;
  views::MapOptions map;
};

capture::Selection selection_of(const Flags& flags, const model::ModelConfig& config) {
  capture::Selection selection;
  selection.stages = {capture::Stage::weights, capture::Stage::row_reference, capture::Stage::row_sum};
  if (flags.layer) selection.layers = {check_index("--layer", *flags.layer, config.num_layers)};
  if (flags.head) selection.heads = {check_index("--head", *flags.head, config.attention.num_heads)};
  return selection;
}

views::MapOptions map_options(const Flags& flags, const capture::Trace& trace) {
  views::MapOptions options = flags.map;
  if (!flags.from.empty()) options.from = find_token(trace.info().tokens, flags.from);
  return options;
}

std::string attend(const Flags& flags, const views::Style& style, const capture::Trace& seen) {
  // The map of one head joins by itself and keeps the numbers of its rows.
  const bool in_words = flags.map.words && !flags.head;
  const capture::Trace words = in_words ? views::in_words(seen) : capture::Trace();
  const capture::Trace& trace = in_words ? words : seen;
  const views::MapOptions options = map_options(flags, trace);
  if (flags.head) {
    if (flags.output.json) return views::attend_head_json(trace, *flags.layer, *flags.head, options);
    return views::draw_map(views::attention_map(trace, *flags.layer, *flags.head, options), options, style);
  }
  const auto heads = views::in_order_of_telling(views::summarize_heads(trace));
  if (flags.output.json) return views::attend_json(trace, heads, options);
  if (options.from) return views::draw_row(trace, *options.from, heads, options, style);
  return views::draw_overview(trace, heads, options, style);
}

void run(const Flags& flags) {
  if (flags.head && !flags.layer) base::refuse("--head", "--layer beside it", "--head alone");
  const views::Style style = flags.output.apply();
  const engine::Session session = open_session(flags.text.model, flags.text.texts());
  if (flags.head && flags.output.json && !flags.text.lines) {  // of seq x seq: written row by row
    const capture::Trace trace =
        watch(session, flags.text.texts().front(), selection_of(flags, session.config()), flags.text);
    views::write_attend_head_json(trace, *flags.layer, *flags.head, map_options(flags, trace), write_output);
    return write_output("\n");
  }
  watch_each(session, selection_of(flags, session.config()), flags.text, flags.output.json,
             [&](const capture::Trace& trace) { return attend(flags, style, trace); });
}

}  // namespace

void add_attend(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("attend", "Show who attends to whom");
  command.footer(
      "Without --layer: the whole model in one screen, the most telling heads first.\n"
      "With --layer and --head: the map of one head and, per token, where it looks.\n"
      "Layers and heads count from 0.");
  add_text_flags(command, flags->text);
  command.add_option("--layer", flags->layer, "only this layer")->check(whole_number)->type_name("L");
  command.add_option("--head", flags->head, "only this head (with --layer)")->check(whole_number)->type_name("H");
  command.add_option("--from", flags->from, "only what this token looks at: its text, or #INDEX")->type_name("TOKEN");
  command.add_option("--top", flags->map.top, "keys named per token (default 3)")
      ->check(CLI::Range(size_t{1}, size_t{1000}))
      ->type_name("K");
  command.add_flag("--words", flags->map.words,
                   "join pieces to words: sum over attended pieces, mean over attending pieces");
  command.add_flag("--hide-special", flags->map.hide_special,
                   "leave special tokens out, without renormalising; the mass that went there is said");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
