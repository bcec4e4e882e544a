// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/json.h"

namespace clearhead::apps {
namespace {

struct Flags {
  TextFlags text;
  OutputFlags output;
};

void run(const Flags& flags) {
  const views::Style style = flags.output.apply();
  const engine::Session session = open_session(flags.text.model, flags.text.texts());
  for_each_text(flags.text, flags.output.json, [&](const std::string& text, const std::string& name) {
    report_invalid_text(text, name);
    const engine::TokenizedText tokens = session.tokenize(text, flags.text.truncate);
    report_tokenization(session, tokens, name);
    if (flags.output.json) return views::tokenize_json(session.name(), tokens.text, tokens.tokens);
    return views::draw_tokens(tokens.tokens, style);
  });
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("tokenize", "Show pieces, ids and byte offsets");
  add_text_flags(command, flags->text);
  add_output_flags(command, flags->output);
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
