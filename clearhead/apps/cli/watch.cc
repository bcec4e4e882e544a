// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/watch.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/apps/cli/console.h"
#include "clearhead/base/error.h"
#include "clearhead/base/output_file.h"
#include "clearhead/base/utf8.h"
#include "clearhead/engine/batch.h"

namespace clearhead::apps {

using Place = std::optional<std::pair<capture::Stage, size_t>>;  // stage and layer

namespace {

// Pictures of values that are no numbers mean nothing: say where they begin.
void report_non_finite(const Place& place, const std::string& name = "") {
  if (!place) return;
  note_about(name,
             fmt::format("values are not finite, first seen at {} of layer {}: the model's parameters are damaged (see "
                         "`clearhead inspect`), and what is shown means nothing",
                         capture::info(place->first).name, place->second));
}

Place first_non_finite(const capture::Trace& trace) {
  for (size_t layer : trace.info().layers) {
    for (const capture::StageInfo& stage : capture::stages()) {
      if (stage.place != capture::Place::in_layer || !trace.has(stage.stage, layer)) continue;
      if (std::ranges::none_of(trace.tensor(stage.stage, layer).as<float>(), [](float x) { return std::isnan(x); }))
        continue;
      return std::pair(stage.stage, layer);
    }
  }
  return std::nullopt;
}

}  // namespace

engine::Session open_model(const std::string& name) {
  const Progress progress(fmt::format("loading {}", name));
  return engine::Session::open(name);
}

engine::Session open_session(const std::string& model, const std::vector<std::string>& texts) {
  engine::Session session = open_model(model_or_default(model, texts));
  for (const std::string& warning : session.warnings()) note(warning);
  return session;
}

engine::TokenizedText read_text(const engine::Session& session, const std::string& text, const TextFlags& flags) {
  report_invalid_text(text);
  engine::TokenizedText tokenized = session.tokenize(text, flags.truncate);
  report_tokenization(session, tokenized);
  return tokenized;
}

capture::Trace watch(const engine::Session& session, const std::string& text, const capture::Selection& selection,
                     const TextFlags& flags, const std::function<size_t(size_t seq_len)>& afterwards) {
  const engine::TokenizedText tokenized = read_text(session, text, flags);
  Progress progress(fmt::format("reading through {}", session.name()));
  engine::RunOptions options = flags.run_options();
  if (afterwards) options.afterwards = afterwards(tokenized.tokens.size());
  options.progress = [&](size_t done, size_t total) { progress.step(done, total); };
  capture::Trace trace = session.run(tokenized, selection, options);
  report_non_finite(first_non_finite(trace));
  return trace;
}

namespace {

// What goes to standard output once all of it is there: a file without a name holds it.
class Spool {
 public:
  Spool() : file_(std::tmpfile()) {
    if (file_ == nullptr) base::fail("temporary file", "room for the result", std::strerror(errno));
  }
  ~Spool() { std::fclose(file_); }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
    base::fail("temporary file", "room for the result", std::strerror(errno));
  }

  void write_out() {
    std::rewind(file_);
    std::vector<char> block(1 << 16);
    while (const size_t got = std::fread(block.data(), 1, block.size(), file_)) write_output({block.data(), got});
  }

 private:
  std::FILE* file_;
};

void watch_lines(const engine::Session& session, const capture::Selection& selection, const TextFlags& flags, bool json,
                 const std::function<std::string(const capture::Trace&)>& work) {
  const std::vector<std::string> texts = flags.texts();
  const engine::RunOptions run_options = flags.run_options();
  engine::BatchOptions options{.truncate = run_options.truncate, .memory_limit = run_options.memory_limit};
  options.name_of = [&](size_t index) { return flags.name_of(index); };
  // A bar would stand between pictures on the same terminal.
  std::optional<Progress> progress;
  if (json || ::isatty(STDOUT_FILENO) == 0) progress.emplace(fmt::format("reading through {}", session.name()));
  options.progress = [&](size_t done, size_t total) {
    if (progress) progress->step(done, total);
  };
  std::vector<std::optional<engine::TokenizedText>> remarkable(texts.size());
  std::vector<Place> non_finite(texts.size());
  const auto make = [&](const engine::BatchItem& item) {
    const engine::TokenizedText& own = item.tokenized;
    if (own.unknown_count > 0 || own.cut > 0 || own.left_out > 0 || own.begins_twice) remarkable[item.index] = own;
    non_finite[item.index] = first_non_finite(item.trace);
    std::string result = work(item.trace);
    while (result.ends_with('\n')) result.pop_back();
    return result;
  };
  std::optional<Spool> document;
  if (json) document.emplace();
  const auto take = [&](size_t index, std::string made) {
    const std::string name = flags.name_of(index);
    report_invalid_text(texts[index], name);
    if (const auto tokenized = std::exchange(remarkable[index], std::nullopt)) {
      report_tokenization(session, *tokenized, name);
    }
    report_non_finite(non_finite[index], name);
    if (json) {
      document->write((index == 0 ? "[" : ",\n") + made);
    } else {
      write_output((index == 0 ? "" : "\n") + made + "\n");
    }
  };
  engine::Batch(session, selection, options).run(texts, make, take);
  progress.reset();
  if (!json) return;
  document->write("]\n");
  document->write_out();
}

}  // namespace

void watch_each(const engine::Session& session, const capture::Selection& selection, const TextFlags& flags, bool json,
                const std::function<std::string(const capture::Trace&)>& work) {
  if (flags.lines) return watch_lines(session, selection, flags, json, work);
  std::string result = work(watch(session, flags.texts().front(), selection, flags));
  if (!result.ends_with('\n')) result += '\n';
  write_output(result);
}

engine::Session::Recorded watch_into(const engine::Session& session, const engine::TokenizedText& tokenized,
                                     const capture::Selection& selection, const TextFlags& flags,
                                     const std::string& path) {
  Progress progress(fmt::format("reading through {}", session.name()));
  engine::RunOptions options = flags.run_options();
  options.progress = [&](size_t done, size_t total) { progress.step(done, total); };
  const engine::Session::Recorded recorded = session.record(tokenized, selection, path, options);
  report_non_finite(recorded.first_nan);
  return recorded;
}

void refuse_to_replace_sources(const std::string& flag, const std::string& path, const engine::Session& session,
                               const TextFlags& flags) {
  std::vector<std::filesystem::path> sources = session.files();
  const bool typed_in = flags.text == "-" || flags.file == "-";
  if (flags.file || typed_in) sources.emplace_back(typed_in ? "/dev/stdin" : *flags.file);
  base::refuse_to_replace(flag, path, sources);
}

size_t check_index(const std::string& flag, size_t index, size_t count) {
  if (index < count) return index;
  base::refuse(flag, fmt::format("0 to {}", count - 1), fmt::format("{}", index));
}

}  // namespace clearhead::apps
