// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/base/version.h"

namespace clearhead::apps {
namespace {

// Text as roff wants it: a backslash and a dot or quote at the head of a line mean something else there.
std::string roff(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  if (safe.starts_with('.') || safe.starts_with('\'')) safe.insert(0, "\\&");
  return safe;
}

std::string command_section(const CLI::App& command) {
  std::string page =
      fmt::format(".SS {}\n{}.\n", roff("clearhead " + command.get_name()), roff(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    const std::string value = takes_value ? " \\fI" + roff(option->get_type_name()) + "\\fR" : "";
    const std::string name = option->get_positional() ? roff(option->get_type_name()) : roff(option->get_name());
    page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", name, option->get_positional() ? "" : value,
                        roff(option->get_description()));
  }
  if (!command.get_footer().empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.get_footer()));
  return page;
}

std::string manual_page(CLI::App& program) {
  std::string page = fmt::format(".TH CLEARHEAD 1 \"\" \"clearhead {}\"\n.SH NAME\nclearhead \\- {}\n", base::kVersion,
                                 roff(program.get_description()));
  page += ".SH SYNOPSIS\n.B clearhead\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n.SH COMMANDS\n";
  for (CLI::App* command : program.get_subcommands([](CLI::App*) { return true; })) page += command_section(*command);
  page += ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted.\n";
  page +=
      ".SH ENVIRONMENT\n.TP\n.B CLEARHEAD_HOME\nWhere models live (default: clearhead in the user's cache folder).\n";
  return page + ".TP\n.B NO_COLOR\nNo colours.\n.TP\n.B CLICOLOR_FORCE\nColours even when the output is no terminal.\n";
}

}  // namespace

void add_manual(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("manual", "Print the manual page, as man reads it");
  command.callback([&program, &action] { action = [&program] { write_output(manual_page(program)); }; });
}

}  // namespace clearhead::apps
