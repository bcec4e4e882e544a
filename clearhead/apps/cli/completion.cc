// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

// One command as a shell sees it.
struct CommandWords {
  std::string name, description;
  std::vector<std::string> flags;         // "--json"
  std::vector<std::string> descriptions;  // [flags]
};

std::vector<CommandWords> command_words(CLI::App& program) {
  std::vector<CommandWords> all;
  for (CLI::App* command : program.get_subcommands([](CLI::App*) { return true; })) {
    CommandWords words{command->get_name(), command->get_description(), {}, {}};
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        words.flags.push_back("--" + name);
        words.descriptions.push_back(option->get_description());
      }
    }
    all.push_back(std::move(words));
  }
  return all;
}

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command.name);
  return names;
}

std::string bash_completion(const std::vector<CommandWords>& commands) {
  std::string script = "_clearhead() {\n  local current=${COMP_WORDS[COMP_CWORD]} words\n  case ${COMP_WORDS[1]} in\n";
  for (const auto& command : commands) {
    script += fmt::format("    {}) words=\"{}\" ;;\n", command.name, fmt::join(command.flags, " "));
  }
  script += fmt::format("    *) words=\"{} --help --version\" ;;\n  esac\n", fmt::join(names_of(commands), " "));
  return script +
         "  if [ \"$COMP_CWORD\" -eq 1 ] || [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  fi\n}\ncomplete -o default -F _clearhead clearhead\n";
}

// Text between single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Brackets and colons are the syntax of zsh's own descriptions.
std::string zsh_description(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string zsh_completion(const std::vector<CommandWords>& commands) {
  std::string script = "#compdef clearhead\n_clearhead() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const auto& command : commands) {
    script += fmt::format("      {}\n", shell_quoted(command.name + ":" + zsh_description(command.description)));
  }
  script += "    )\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n";
  for (const auto& command : commands) {
    script += fmt::format("    {})\n      _arguments", command.name);
    for (size_t i = 0; i < command.flags.size(); ++i) {
      script += fmt::format(" \\\n        {}",
                            shell_quoted(command.flags[i] + "[" + zsh_description(command.descriptions[i]) + "]"));
    }
    script += " \\\n        '*:file:_files' ;;\n";
  }
  return script + "  esac\n}\n_clearhead \"$@\"\n";
}

std::string fish_completion(const std::vector<CommandWords>& commands) {
  std::string script;
  for (const auto& command : commands) {
    script += fmt::format("complete -c clearhead -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                          shell_quoted(command.description));
    for (size_t i = 0; i < command.flags.size(); ++i) {
      script += fmt::format("complete -c clearhead -n '__fish_seen_subcommand_from {}' -l {} -d {}\n", command.name,
                            command.flags[i].substr(2), shell_quoted(command.descriptions[i]));
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& program, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand("completion", "Print the completion script of a shell");
  command.footer("For bash: eval \"$(clearhead completion bash)\"");
  command.add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("SHELL");
  command.callback([shell, &program, &action] {
    action = [shell, &program] {
      const auto commands = command_words(program);
      if (*shell == "bash") return write_output(bash_completion(commands));
      if (*shell == "zsh") return write_output(zsh_completion(commands));
      if (*shell == "fish") return write_output(fish_completion(commands));
      base::refuse("completion", "bash, zsh or fish", base::quoted(*shell));
    };
  });
}

}  // namespace clearhead::apps
