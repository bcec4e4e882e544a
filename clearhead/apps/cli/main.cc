// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <new>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/short_waits.h"
#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/target.h"
#include "clearhead/base/version.h"
#include "clearhead/engine/text_error.h"

namespace clearhead::apps {
namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kInterrupted = 130;

const pthread_t main_thread = pthread_self();

// The first signal asks the work to stop and clean up; the second ends the program at once.
extern "C" void stop_on_signal(int signal) {
  if (pthread_equal(pthread_self(), main_thread) == 0) {  // a worker got it: wake the thread that reads and writes
    pthread_kill(main_thread, signal);
    return;
  }
  base::request_interrupt();
  std::signal(signal, SIG_DFL);
}

// Without SA_RESTART: whoever waits for input or for a reader of the output wakes up.
void stop_on(int signal) {
  struct sigaction action = {};
  action.sa_handler = stop_on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void handle_signals() {
  stop_on(SIGINT);
  stop_on(SIGTERM);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) stop_on(SIGHUP);  // else it was started to outlive its terminal
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void add_commands(CLI::App& program, Action& action) {
  add_attend(program, action);
  add_lesson(program, action);
  add_heads(program, action);
  add_tokenize(program, action);
  add_record(program, action);
  add_verify(program, action);
  add_generate(program, action);
  add_inspect(program, action);
  add_models(program, action);
  add_fetch(program, action);
  add_bench(program, action);
  add_op(program, action);
  add_completion(program, action);
  add_manual(program, action);
}

std::string version_line() {
  return fmt::format("clearhead {} (kernels run on {})", base::kVersion, base::simd_target());
}

// Help and version are results; anything else that CLI11 reports is a wrong call.
int answer_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream out, ignored;
    program.exit(error, out, ignored);
    write_output(out.str());
    return kDone;
  }
  std::string command = "clearhead";
  for (const CLI::App* chosen : program.get_subcommands()) command += " " + chosen->get_name();
  note(fmt::format("[command line] {}; see `{} --help`", error.what(), command));
  return kWrongUsage;
}

// CLI11 says of an unknown command only that one is missing.
void refuse_unknown_command(CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return;
    names.push_back(command->get_name());
  }
  base::refuse("command line", fmt::format("one of {}", fmt::join(names, ", ")), base::quoted(argv[1]));
}

int run(int argc, char** argv) {
  CLI::App program("Multi-head attention that you can see through: what does each token look at, and why?",
                   "clearhead");
  program.set_version_flag("--version", version_line);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  Action action;
  add_commands(program, action);
  refuse_unknown_command(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer_parse_error(program, error);
  }
  action();
  return kDone;
}

// The last words of each way to end. The only place where exceptions become exit codes.
int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const ClosedPipe&) {
    return kDone;
  } catch (const base::Interrupted&) {
    return kInterrupted;
  } catch (const engine::TextTooLong& error) {
    note(fmt::format("{} (--truncate)", error.what()));
    return kWrongUsage;
  } catch (const base::Error& error) {
    note(error.what());
    return error.fault() == base::Fault::usage ? kWrongUsage : kFailed;
  } catch (const std::bad_alloc&) {
    note("[memory] expected enough for this run; found too little; try a shorter text or fewer stages");
    return kFailed;
  } catch (const std::exception& error) {
    note(fmt::format("[clearhead] expected no error of the program itself; found {}; please report it", error.what()));
    return kFailed;
  }
}

}  // namespace
}  // namespace clearhead::apps

int main(int argc, char** argv) {
  clearhead::apps::start_with_short_waits(argv);
  clearhead::apps::handle_signals();
  return clearhead::apps::run_and_report(argc, argv);
}
