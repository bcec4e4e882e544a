// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/op/operator.h"
#include "clearhead/base/parallel.h"

namespace clearhead::apps {
namespace {

struct Flags {
  OpRequest request;
  std::string outputs;
  size_t threads = 0;
};

void run(Flags& flags) {
  if (flags.threads > 0) base::set_num_threads(flags.threads);
  if (!flags.outputs.empty()) flags.request.outputs = CLI::detail::split(flags.outputs, ',');
  run_operator(flags.request);
}

}  // namespace

void add_op(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("op", "Run one operator on the tensors of a safetensors file");
  command.footer(operator_help());
  command.add_option("name", flags->request.name, "the operator")->required()->type_name("NAME");
  command.add_option("input", flags->request.input, "its inputs, by name")->required()->type_name("IN.safetensors");
  command.add_option("output", flags->request.output, "the file to write")->required()->type_name("OUT.safetensors");
  command.add_option("--attributes", flags->request.attributes, "one JSON object")->type_name("JSON");
  command.add_option("--outputs", flags->outputs, "outputs to compute, separated by commas")->type_name("A,B");
  command.add_option("--threads", flags->threads, "threads to use (default: all that this process may use)")
      ->check(CLI::Range(size_t{1}, size_t{1024}))
      ->type_name("N");
  command.callback([flags, &action] { action = [flags] { run(*flags); }; });
}

}  // namespace clearhead::apps
