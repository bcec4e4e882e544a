// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/lesson.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/base/error.h"
#include "clearhead/views/head_summary.h"

namespace clearhead::apps {
namespace {

constexpr const char* kExample = "The cat sat on the mat";

struct Flags {
  TextFlags text;
  OutputFlags output;
  bool toy = false;
  engine::ToyConfig toy_config;
  std::string split = "projection", step, from;
  std::optional<std::string> path;
  std::optional<size_t> layer, head;
  bool toy_flag_given = false;  // one of the flags that only a toy understands
};

attention::Split split_of(const std::string& name) {
  if (name == "projection") return attention::Split::projection;
  if (name == "input") return attention::Split::input;
  base::refuse("--split", "projection or input", base::quoted(name));
}

engine::Session open_subject(const Flags& flags, const std::string& text) {
  const attention::Split split = split_of(flags.split);
  if (!flags.toy) {
    if (flags.toy_flag_given) base::refuse("lesson", "--toy beside --d-model, --heads or --seed", "none");
    if (split == attention::Split::input) {
      base::refuse("--split input", "--toy", "a trained model",
                   "its matrices read the whole vector; see docs/input_split.md");
    }
    return open_session(flags.text.model, {text});
  }
  if (!flags.text.model.empty()) base::refuse("lesson", "--toy or --model", "both");
  engine::ToyConfig config = flags.toy_config;
  config.split = split;
  return engine::Session::toy(config);
}

capture::Selection everything_of(size_t layer) {
  capture::Selection selection;
  selection.stages = capture::parse_stages("all");
  selection.layers = {layer};
  return selection;
}

// What the model does, as the lesson has to tell it.
views::LessonOptions options_of(const model::ModelConfig& config, size_t layer) {
  views::LessonOptions options;
  options.input_split = config.split == attention::Split::input;
  options.embedding_norm = config.embedding_norm;
  options.embedding_scaled = config.embedding_scale != 1;
  options.pre_norm =
      config.norm_placement == model::NormPlacement::pre || config.norm_placement == model::NormPlacement::around;
  options.head_norm = config.head_norm;
  options.causal = config.attention.causal != attention::Causal::none;
  if (const model::RotaryConfig* rotary = config.rotary_of(layer)) {
    options.rotary = views::RotaryPairs{rotary->dim, rotary->layout == kernels::RotaryLayout::interleaved};
  }
  const float usual = 1 / std::sqrt(static_cast<float>(config.attention.head_dim));
  if (config.attention.scale && *config.attention.scale != usual) options.score_scale = config.attention.scale;
  options.soft_cap = config.attention.soft_cap;
  options.window = config.attention_of(layer).left_window;
  return options;
}

// One run of the weights finds what is worth following unless the flags say it all.
views::LessonFocus focus_of(const Flags& flags, const engine::Session& session, const std::string& text) {
  capture::Selection selection;
  selection.stages = {capture::Stage::weights};
  if (flags.layer) selection.layers = {check_index("--layer", *flags.layer, session.config().num_layers)};
  if (flags.head) selection.heads = {check_index("--head", *flags.head, session.config().attention.num_heads)};
  const capture::Trace trace = watch(session, text, selection, flags.text);
  std::optional<size_t> from;
  if (!flags.from.empty()) from = find_token(trace.info().tokens, flags.from);
  return views::choose_focus(trace, views::in_order_of_telling(views::summarize_heads(trace)), from);
}

void run(const Flags& flags) {
  if (flags.head && !flags.layer) base::refuse("--head", "--layer beside it", "--head alone");
  if (flags.text.lines) base::refuse("lesson", "one text", "--lines");
  const views::Style style = flags.output.apply();
  TextFlags text = flags.text;
  if (!text.text && !text.file) text.text = kExample;
  const std::string content = text.texts().front();
  const engine::Session session = open_subject(flags, content);
  if (flags.path) refuse_to_replace_sources("lesson --output", *flags.path, session, flags.text);
  const views::LessonFocus focus = focus_of(flags, session, content);
  views::LessonOptions options = options_of(session.config(), focus.layer);
  options.focus = focus;
  options.language = style.language;
  engine::RunOptions run_options = text.run_options();
  const capture::Trace trace = session.run(content, everything_of(options.focus.layer), run_options);
  if (flags.path) trace.write(*flags.path);
  const auto steps = views::make_lesson(trace, options);
  write_output(flags.output.json ? views::lesson_json(trace, steps, options.focus) + "\n"
                                 : views::draw_lesson(trace, steps, flags.step, style));
}

void add_toy_flags(CLI::App& command, Flags& flags) {
  const auto mark = [&flags](const auto&) { flags.toy_flag_given = true; };
  command.add_flag("--toy", flags.toy, "documented pseudo-random parameters instead of a model");
  command.add_option("--d-model", flags.toy_config.d_model, "width of the toy's vectors (default 512)")
      ->check(CLI::Range(size_t{1}, engine::ToyConfig::kMaxWidth))
      ->type_name("N")
      ->each(mark);
  command.add_option("--heads", flags.toy_config.num_heads, "heads of the toy (default 8)")
      ->check(CLI::Range(size_t{1}, size_t{1} << 10))
      ->type_name("N")
      ->each(mark);
  command.add_option("--seed", flags.toy_config.seed, "seed of the toy's parameters (default 7)")
      ->check(whole_number)
      ->type_name("N")
      ->each(mark);
  command.add_option("--split", flags.split, "projection (the standard) or input (the simplified telling, with --toy)")
      ->type_name("HOW");
}

}  // namespace

void add_lesson(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("lesson", "Tell the computation step by step, with real numbers");
  command.footer(
      fmt::format("Without a text: \"{}\". Every number can be found in the trace that --output writes.", kExample));
  add_text_flags(command, flags->text);
  add_toy_flags(command, *flags);
  command.add_option("--layer", flags->layer, "follow this layer (default: of the most telling head)")
      ->check(whole_number)
      ->type_name("L");
  command.add_option("--head", flags->head, "follow this head (with --layer)")->check(whole_number)->type_name("H");
  command.add_option("--from", flags->from, "follow this token: its text, or #INDEX")->type_name("TOKEN");
  command.add_option("--step", flags->step, "only this step, by name")->type_name("NAME");
  command.add_option("--output", flags->path, "write the trace of the same run")->type_name("FILE");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
