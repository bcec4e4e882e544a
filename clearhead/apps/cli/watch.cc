// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/watch.h"

#include <fmt/format.h>

#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {

engine::Session open_session(const std::string& model) {
  const std::string name = model_or_default(model);
  const Progress progress(fmt::format("loading {}", name));
  return engine::Session::open(name);
}

capture::Trace watch(const engine::Session& session, const std::string& text, const capture::Selection& selection,
                     const TextFlags& flags) {
  report_tokenization(session, session.tokenize(text, flags.truncate));
  Progress progress(fmt::format("reading through {}", session.name()));
  engine::RunOptions options = flags.run_options();
  options.progress = [&](size_t done, size_t total) { progress.step(done, total); };
  return session.run(text, selection, options);
}

size_t check_index(const std::string& flag, size_t index, size_t count) {
  if (index < count) return index;
  base::refuse(flag, fmt::format("0 to {}", count - 1), fmt::format("{}", index));
}

}  // namespace clearhead::apps
