// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace clearhead::apps {

// The work that the command line asks for, run once the whole line is understood.
using Action = std::function<void()>;

// Each function adds one command to the program; action is set when the command is chosen.
void add_attend(CLI::App& program, Action& action);
void add_lesson(CLI::App& program, Action& action);
void add_heads(CLI::App& program, Action& action);
void add_tokenize(CLI::App& program, Action& action);
void add_record(CLI::App& program, Action& action);
void add_verify(CLI::App& program, Action& action);
void add_generate(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_models(CLI::App& program, Action& action);
void add_fetch(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_op(CLI::App& program, Action& action);
void add_completion(CLI::App& program, Action& action);
void add_manual(CLI::App& program, Action& action);

}  // namespace clearhead::apps
