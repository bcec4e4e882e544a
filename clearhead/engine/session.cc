// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/session.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/capture/recorder.h"
#include "clearhead/capture/trace_writer.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/rebuilt.h"
#include "clearhead/engine/text_error.h"
#include "clearhead/format/chat_template.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/model/families/family.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "clearhead/text/tokenizer.h"
#include "clearhead/text/toy_tokenizer.h"

namespace clearhead::engine {
namespace {

// Ids of the toy's tokenizer are below.
constexpr size_t kToyVocabSize = size_t{1} << 31;

// Leaves limit tokens; special ones that end the text stay its end.
void cut_tokens(std::vector<text::Token>& tokens, size_t limit) {
  size_t ending = 0;
  while (ending < limit && ending < tokens.size() && tokens[tokens.size() - 1 - ending].special) ++ending;
  const auto end = tokens.end() - static_cast<std::ptrdiff_t>(ending);
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(limit - ending), end);
}

// Hands everything on to a recorder, if there is one, and says after each layer how far the run is.
class Reporter : public capture::Observer {
 public:
  Reporter(capture::Observer* recorder, const RunOptions& options, size_t num_layers)
      : recorder_(recorder), options_(options), num_layers_(num_layers) {}

  bool wants(capture::Stage stage, size_t layer) const override {
    return (recorder_ != nullptr && recorder_->wants(stage, layer)) || reports(stage);
  }
  void observe(capture::Stage stage, size_t layer, const tensor::TensorView& values) override {
    if (recorder_ != nullptr) recorder_->observe(stage, layer, values);
    if (reports(stage)) options_.progress(layer + 1, num_layers_);
  }
  void observe_source(capture::Stage stage, size_t layer, const capture::WeightSource& source) override {
    recorder_->observe_source(stage, layer, source);
  }

 private:
  bool reports(capture::Stage stage) const { return options_.progress && stage == capture::Stage::layer_output; }

  capture::Observer* recorder_;
  const RunOptions& options_;
  size_t num_layers_;
};

std::vector<int64_t> ids_of(const TokenizedText& tokenized) {
  std::vector<int64_t> ids;
  for (const capture::TraceToken& token : tokenized.tokens) ids.push_back(token.id);
  return ids;
}

// Goes away with all that is in it; files that are mapped stay readable.
struct RemovedFolder {
  std::filesystem::path path;

  ~RemovedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

struct Session::Parts {
  std::string name;
  model::LoadedModel model;
  std::optional<text::Tokenizer> tokenizer;                        // absent: the toy's
  std::shared_ptr<const format::Checkpoint> checkpoint = nullptr;  // absent: the toy
  std::vector<std::filesystem::path> files = {};

  text::Encoding encode(std::string_view text) const {
    return tokenizer ? tokenizer->encode(text) : text::toy_encode(text);
  }

  const text::Tokenizer& vocabulary() const {
    if (!tokenizer) base::refuse("text", "a model with a vocabulary", "the toy, which has none");
    return *tokenizer;
  }

  bool is_control(int64_t id) const {
    return tokenizer && tokenizer->decode({&id, 1}, true).empty() && !tokenizer->decode({&id, 1}, false).empty();
  }

  // Text cut at these places, each part read by itself.
  text::Encoding encode_cut(std::string_view text, const std::set<size_t>& cuts) const {
    text::Encoding all = encode(text.substr(0, cuts.empty() ? text.size() : *cuts.begin()));
    std::optional<text::Token> ending;  // that the tokenizer puts behind a text
    if (!cuts.empty() && !all.tokens.empty() && all.tokens.back().special) {
      ending = all.tokens.back();
      all.tokens.pop_back();
    }
    for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
      const size_t end = std::next(cut) == cuts.end() ? text.size() : *std::next(cut);
      const text::Encoding part = tokenizer->encode(text.substr(*cut, end - *cut), false);
      for (text::Token token : part.tokens) {
        token.begin += *cut;
        token.end += *cut;
        all.tokens.push_back(std::move(token));
      }
      all.unknown_count += part.unknown_count;
    }
    if (ending) all.tokens.push_back(*ending);
    return all;
  }

  // Control tokens in a quoted part are cut behind their first character until none is left.
  text::Encoding encode_quoted(std::string_view text, std::span<const QuotedPart> quoted) const {
    std::set<size_t> cuts;
    if (!tokenizer || quoted.empty()) return encode(text);
    while (true) {
      text::Encoding encoding = encode_cut(text, cuts);
      const size_t before = cuts.size();
      for (const text::Token& token : encoding.tokens) {
        const auto inside = [&](const QuotedPart& part) { return token.begin >= part.begin && token.end <= part.end; };
        if (token.begin == token.end || std::ranges::none_of(quoted, inside) || !is_control(token.id)) continue;
        const size_t place = token.begin + base::decode_utf8(text.substr(token.begin)).length;
        if (place < token.end) cuts.insert(place);
      }
      if (cuts.size() == before) return encoding;
    }
  }

  size_t limit_of(const RunOptions& options) const {
    const std::optional<size_t> available = free_memory();
    return options.memory_limit.value_or(available ? *available / 2 : std::numeric_limits<size_t>::max());
  }

  // Throws: Error with the estimate if it is over the limit.
  void check_memory(size_t estimate, const RunOptions& options) const {
    const size_t limit = limit_of(options);
    if (estimate <= limit) return;
    base::refuse("memory", fmt::format("a run that keeps at most {} bytes", limit),
                 estimate == kUncountable ? std::string("more than can be counted") : fmt::format("{} bytes", estimate),
                 options.memory_limit
                     ? "record fewer stages, layers or heads, or raise the limit"
                     : "record fewer stages, layers or heads, or set a limit above half of what is free");
  }

  const model::ModelConfig& config() const { return model.transformer.config(); }

  // Runs and writes what is selected, all of which the model has.
  capture::TraceWriter write_while_running(const Session& session, const TokenizedText& tokenized,
                                           const capture::Selection& selection, const std::filesystem::path& path,
                                           const RunOptions& options) const {
    const std::vector<int64_t> ids = ids_of(tokenized);
    const capture::AxisSizes sizes = {{"d_model", config().d_model},
                                      {"d_ff", config().d_ff},
                                      {"vocab", config().vocab_size},
                                      {"head_dim", config().attention.head_dim},
                                      {"value_dim", config().attention.value_dim}};
    capture::TraceWriter writer(path, selection, session.trace_info(tokenized), config().attention.num_kv_heads, sizes);
    Reporter reporter(&writer, options, config().num_layers);
    model.transformer.run({.ids = ids, .type_ids = tokenized.type_ids, .declared_len = tokenized.declared_len},
                          &reporter);
    return writer;
  }

  // The same, read back from a file without a name.
  capture::Trace spill(const Session& session, const TokenizedText& tokenized, const capture::Selection& selection,
                       const RunOptions& options) const {
    std::string folder = (options.spill / "clearhead-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
      base::fail(base::quoted(options.spill.string(), 400), "a folder for a record over the memory limit",
                 std::strerror(errno));
    }
    const RemovedFolder removed{folder};
    const std::filesystem::path path = removed.path / "trace.safetensors";
    write_while_running(session, tokenized, selection, path, options).commit();
    return capture::Trace::read(path);
  }
};

Session::Session(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Session Session::open(std::string_view model) {
  if (const auto config = ToyConfig::parse(model)) return toy(*config);
  const format::ResolvedModel resolved = format::resolve_model(model);
  const auto checkpoint = std::make_shared<const format::Checkpoint>(format::Checkpoint::open(resolved.path));
  const format::GgufMetadata* gguf = checkpoint->gguf_metadata();
  auto tokenizer =
      gguf != nullptr ? text::gguf_tokenizer(*gguf) : text::Tokenizer::from_file(checkpoint->tokenizer_path());
  model::LoadedModel loaded = model::load_model(checkpoint);
  for (std::string& warning : tokenizer.warnings()) loaded.warnings.push_back(std::move(warning));
  // Pages between the parts that were packed, and those of the tokenizer, which nobody reads again.
  checkpoint->release_pages();
  ::malloc_trim(0);  // what was only needed while the tokenizer was read
  return Session(std::make_unique<Parts>(
      Parts{base::valid_utf8(model), std::move(loaded), std::move(tokenizer), checkpoint, checkpoint->files()}));
}

Session Session::toy(const ToyConfig& config) {
  return Session(std::make_unique<Parts>(Parts{config.text(), {make_toy(config, kToyVocabSize), {}}, std::nullopt}));
}

const std::string& Session::name() const { return parts_->name; }
const model::Transformer& Session::transformer() const { return parts_->model.transformer; }
const std::vector<std::filesystem::path>& Session::files() const { return parts_->files; }
const std::vector<std::string>& Session::warnings() const { return parts_->model.warnings; }
const std::vector<int64_t>& Session::end_ids() const { return parts_->model.end_ids; }
std::string Session::chat_template() const {
  return parts_->checkpoint ? format::chat_template(*parts_->checkpoint) : "";
}

std::string Session::decode(std::span<const int64_t> ids) const {
  text::DecodeStream stream = decode_stream();
  std::string text;
  for (const int64_t id : ids) text += stream.add(id);
  return text + stream.finish();
}

text::DecodeStream Session::decode_stream() const { return parts_->vocabulary().decode_stream(true); }

size_t Session::num_pieces() const { return parts_->vocabulary().vocab_size(); }

std::string_view Session::piece_of(int64_t id) const { return parts_->vocabulary().piece_of(id); }

bool Session::is_control(int64_t id) const { return parts_->is_control(id); }

TokenizedText Session::tokenize(std::string_view text, bool truncate) const {
  return tokenize_quoted(text, {}, truncate);
}

TokenizedText Session::tokenize_quoted(std::string_view text, std::span<const QuotedPart> quoted, bool truncate) const {
  TokenizedText result;
  result.text = base::valid_utf8(text);
  text::Encoding encoding = parts_->encode_quoted(result.text, quoted);
  const bool says_something =
      std::ranges::any_of(encoding.tokens, [](const text::Token& token) { return !token.special; });
  if (!says_something) base::refuse("text", "a text with at least one token", text.empty() ? "an empty text" : "none");

  const size_t seq_len = encoding.tokens.size(), context_len = config().context_len;
  if (context_len != 0 && seq_len > context_len) {
    if (!truncate) {
      throw TextTooLong(base::Fault::usage,
                        fmt::format("[text] expected at most {} tokens, the positions of {}; found {} tokens; shorten "
                                    "the text, or let it be truncated",
                                    context_len, base::quoted(name()), seq_len));
    }
    cut_tokens(encoding.tokens, context_len);
    result.cut = seq_len - context_len;
  }
  result.unknown_count = encoding.unknown_count;
  result.left_out = encoding.left_out;
  if (seq_len > 1) {
    const text::Token &first = encoding.tokens[0], &second = encoding.tokens[1];
    result.begins_twice = first.special && !second.special && first.id == second.id;
  }
  for (text::Token& token : encoding.tokens) {
    result.type_ids.push_back(static_cast<int64_t>(token.type_id));
    result.tokens.push_back({.text = std::move(token.text),
                             .piece = std::move(token.piece),
                             .id = token.id,
                             .begin = token.begin,
                             .end = token.end,
                             .special = token.special,
                             .continues_word = token.continues_word,
                             .type_id = result.type_ids.back()});
  }
  return result;
}

capture::TraceInfo Session::trace_info(const TokenizedText& tokenized) const {
  capture::TraceInfo info;
  info.model = name();
  info.text = tokenized.text;
  info.tokens = tokenized.tokens;
  info.written = tokenized.written;
  if (config().depends_on_length()) info.declared_len = tokenized.declared_len;
  info.attention = config().attention_json();
  info.num_layers = config().num_layers;
  info.num_heads = config().attention.num_heads;
  return info;
}

size_t Session::memory_estimate(size_t seq_len, const capture::Selection& selection, bool rebuild) const {
  return estimate_run(transformer(), seq_len, rebuild ? rebuildable(transformer(), selection) : selection).total();
}

void Session::check_memory(size_t bytes, const RunOptions& options) const { parts_->check_memory(bytes, options); }

capture::Trace Session::run(std::string_view text, const capture::Selection& selection,
                            const RunOptions& options) const {
  return run(tokenize(text, options.truncate), selection, options);
}

capture::Trace Session::run(const TokenizedText& tokenized, const capture::Selection& selection,
                            const RunOptions& options) const {
  const capture::Selection kept = options.rebuild ? rebuildable(transformer(), selection) : selection;
  RunBytes bytes = estimate_run(transformer(), tokenized.tokens.size(), kept);
  bytes.passing = std::max(bytes.passing, options.afterwards);
  const bool spills = !options.spill.empty() && bytes.total() > parts_->limit_of(options);
  parts_->check_memory(spills ? RunBytes{bytes.parameters, 0, bytes.passing}.total() : bytes.total(), options);
  capture::Trace trace;
  if (spills) {
    trace = parts_->spill(*this, tokenized, with_stages_of(transformer(), kept), options);
  } else {
    const std::vector<int64_t> ids = ids_of(tokenized);
    capture::Recorder recorder(kept, trace_info(tokenized), config().attention.num_kv_heads);
    Reporter reporter(&recorder, options, config().num_layers);
    transformer().run({.ids = ids, .type_ids = tokenized.type_ids, .declared_len = tokenized.declared_len}, &reporter);
    trace = std::move(recorder).take();
  }
  if (options.rebuild) attach_rebuilt(transformer(), selection.stages, trace);
  return trace;
}

Session::Recorded Session::record(const TokenizedText& tokenized, const capture::Selection& selection,
                                  const std::filesystem::path& path, const RunOptions& options) const {
  const size_t tokens = tokenized.tokens.size();
  const RunBytes bytes = estimate_run(transformer(), tokens, selection);
  parts_->check_memory(RunBytes{bytes.parameters, 0, bytes.passing}.total(), options);
  capture::TraceWriter writer =
      parts_->write_while_running(*this, tokenized, with_stages_of(transformer(), selection), path, options);
  writer.commit();
  return {tokens, writer.bytes(), writer.first_nan()};
}

tensor::Tensor Session::encode(std::string_view text, const RunOptions& options) const {
  const TokenizedText tokenized = tokenize(text, options.truncate);
  parts_->check_memory(estimate_run(transformer(), tokenized.tokens.size(), {}).total(), options);
  const std::vector<int64_t> ids = ids_of(tokenized);
  Reporter reporter(nullptr, options, config().num_layers);
  return transformer().run({.ids = ids, .type_ids = tokenized.type_ids, .declared_len = tokenized.declared_len},
                           &reporter);
}

}  // namespace clearhead::engine
