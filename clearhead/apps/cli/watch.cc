// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"

namespace clearhead::apps {
namespace {

void report_invalid_text(const std::string& text) {
  if (const auto place = base::first_invalid_utf8(text)) {
    note(fmt::format("byte {} of the text is not UTF-8; it and others like it are read as U+FFFD", *place));
  }
}

// Pictures of values that are no numbers mean nothing: say where they begin.
void report_non_finite(const capture::Trace& trace) {
  for (size_t layer : trace.info().layers) {
    for (const capture::StageInfo& stage : capture::stages()) {
      if (stage.place != capture::Place::in_layer || !trace.has(stage.stage, layer)) continue;
      if (std::ranges::none_of(trace.tensor(stage.stage, layer).as<float>(), [](float x) { return std::isnan(x); }))
        continue;
      return note(
          fmt::format("values are not finite, first seen at {} of layer {}: the model's parameters are damaged (see "
                      "`clearhead inspect`), and what is shown means nothing",
                      stage.name, layer));
    }
  }
}

}  // namespace

engine::Session open_session(const std::string& model) {
  const std::string name = model_or_default(model);
  const Progress progress(fmt::format("loading {}", name));
  return engine::Session::open(name);
}

capture::Trace watch(const engine::Session& session, const std::string& text, const capture::Selection& selection,
                     const TextFlags& flags) {
  report_invalid_text(text);
  engine::TokenizedText tokenized = session.tokenize(text, flags.truncate);
  report_tokenization(session, tokenized);
  Progress progress(fmt::format("reading through {}", session.name()));
  engine::RunOptions options = flags.run_options();
  options.progress = [&](size_t done, size_t total) { progress.step(done, total); };
  capture::Trace trace = session.run(std::move(tokenized), selection, options);
  report_non_finite(trace);
  return trace;
}

size_t check_index(const std::string& flag, size_t index, size_t count) {
  if (index < count) return index;
  base::refuse(flag, fmt::format("0 to {}", count - 1), fmt::format("{}", index));
}

}  // namespace clearhead::apps
