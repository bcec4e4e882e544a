// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/engine/toy.h"
#include "clearhead/model/transformer.h"

namespace clearhead::text {
class DecodeStream;
}

namespace clearhead::engine {

struct RunOptions {
  bool truncate = false;                    // cut to the model's positions instead of refusing
  std::optional<size_t> memory_limit = {};  // bytes; absent: half of what is free
  // Stages of [batch, heads, query, key] are not kept: the trace keeps what they are made of, which grows with the
  // length and not with its square, and rebuilds what is looked at (Trace::source), bit for bit.
  bool rebuild = false;
  // A folder for a record that would pass the memory limit: it goes to a mapped trace file there that has no name any
  // more. Empty: such a run is refused.
  std::filesystem::path spill = {};
  // Bytes that whoever looks at the trace needs once the run is over, beside it: they are within the limit too.
  size_t afterwards = 0;
  // Called after each layer, on the thread that runs.
  std::function<void(size_t layers_done, size_t num_layers)> progress = {};
};

// A text as the model reads it.
struct TokenizedText {
  std::string text;                         // valid UTF-8; invalid bytes of the input stand as U+FFFD
  std::vector<capture::TraceToken> tokens;  // [seq], special tokens included; offsets are bytes of text
  std::vector<int64_t> type_ids;            // [seq]
  size_t declared_len = 0;                  // tokens it was to have when it was written; 0: as many as it has
  size_t written = 0;                       // of the tokens, so many at the end the model chose itself
  size_t unknown_count = 0;                 // tokens of the whole text for which the model has no piece
  size_t cut = 0;                           // tokens that truncate left out; special tokens at the end stay
  size_t left_out = 0;                      // bytes for which no token stands, since the model has no piece
  bool begins_twice = false;                // the text itself has the token that the tokenizer puts in front
};

// Bytes [begin, end) of a text that somebody else has written.
struct QuotedPart {
  size_t begin, end;
};

// The facade: a model with its tokenizer, from loading to a finished trace. Several threads may use one session.
class Session {
 public:
  // model: a name, folder, file or org/name as format::resolve_model takes it; "toy" with its settings
  // ("toy d_model=512 heads=8 seed=7 split=projection", the name a toy's trace carries) makes a toy.
  // Throws: Error.
  static Session open(std::string_view model);
  static Session toy(const ToyConfig& config);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::string& name() const;  // as the user named the model and traces carry it; opens it again
  const model::Transformer& transformer() const;
  const model::ModelConfig& config() const { return transformer().config(); }
  // The files that the model was read from; none of a toy.
  const std::vector<std::filesystem::path>& files() const;
  // What a user may want to know about the files, one line each.
  const std::vector<std::string>& warnings() const;

  // Throws: Error (usage) if the text has no token beside the special ones; TextTooLong with both numbers if there are
  // more tokens than positions and truncate is off.
  TokenizedText tokenize(std::string_view text, bool truncate = false) const;
  // The same where control tokens that stand in a quoted part are read as the letters they are written with: what a
  // person says cannot end the turn.
  TokenizedText tokenize_quoted(std::string_view text, std::span<const QuotedPart> quoted, bool truncate = false) const;

  // What a trace of this text says about itself, but for what is recorded.
  capture::TraceInfo trace_info(const TokenizedText& tokenized) const;

  // Bytes that a run of seq_len tokens keeps with this selection (estimate_run in memory_estimate.h).
  size_t memory_estimate(size_t seq_len, const capture::Selection& selection, bool rebuild = false) const;

  // Throws: Error (usage) with the estimate if that many bytes are over the memory limit.
  void check_memory(size_t bytes, const RunOptions& options) const;

  // From text to trace. Throws: Error, also with the estimate if it is over the memory limit.
  capture::Trace run(std::string_view text, const capture::Selection& selection, const RunOptions& options = {}) const;
  // The same for a text that this session has tokenized already; options.truncate has been said then.
  capture::Trace run(const TokenizedText& tokenized, const capture::Selection& selection,
                     const RunOptions& options = {}) const;

  // Writes what is selected to a trace file while the run goes on, and keeps none of it in memory. Stages that the
  // model does not have are left out.
  struct Recorded {
    size_t tokens = 0, bytes = 0;                                // of the text; of all tensors
    std::optional<std::pair<capture::Stage, size_t>> first_nan;  // stage and layer in which a value was no number
  };
  Recorded record(const TokenizedText& tokenized, const capture::Selection& selection,
                  const std::filesystem::path& path, const RunOptions& options = {}) const;

  // The text of ids, special tokens left out. Throws: Error for an id outside the vocabulary.
  std::string decode(std::span<const int64_t> ids) const;

  // The same text as it grows, token by token; the session must outlive it.
  text::DecodeStream decode_stream() const;
  // Ids below it have a piece, empty where the file left one out; the rows of the embedding may be more. Throws: Error
  // for the toy, which has no pieces.
  size_t num_pieces() const;
  // The piece of the vocabulary, and whether it is one that no text is written with, such as the end of a turn.
  // Throws: Error for an id outside the vocabulary.
  std::string_view piece_of(int64_t id) const;
  bool is_control(int64_t id) const;
  // Tokens that end a text, as the model's files say.
  const std::vector<int64_t>& end_ids() const;
  // The chat template of the model's files, or nothing; it is looked at for known names and never run. Throws: Error as
  // format::chat_template, which reads it now.
  std::string chat_template() const;

  // The last hidden state [1, seq, d_model], nothing recorded. Throws: as run.
  tensor::Tensor encode(std::string_view text, const RunOptions& options = {}) const;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace clearhead::engine
