// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/model/transformer.h"

namespace clearhead::engine {

// A model made of documented pseudo-random parameters: needs no file. One layer, attention only.
struct ToyConfig {
  size_t d_model = 512;
  size_t num_heads = 8;
  uint64_t seed = 7;
  attention::Split split = attention::Split::projection;
};

struct RunOptions {
  bool truncate = false;               // cut to the model's positions instead of refusing
  std::optional<size_t> memory_limit;  // bytes; absent: half of what is free
  std::function<void(size_t done, size_t total)> progress;  // called when a layer is finished; empty: nobody waits
};

// A text as the model reads it.
struct TokenizedText {
  std::string text;                         // valid UTF-8; invalid bytes of the input stand as U+FFFD
  std::vector<capture::TraceToken> tokens;  // [seq], special tokens included
  std::vector<int64_t> type_ids;            // [seq]
  size_t unknown_count = 0;                 // tokens for which the model has no piece
  size_t cut = 0;                           // tokens that truncate left out
};

// The facade: a model with its tokenizer, from loading to a finished trace.
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

  const std::string& name() const;  // as traces carry it
  const model::Transformer& transformer() const;
  const model::ModelConfig& config() const { return transformer().config(); }

  // Throws: Error (usage) with both numbers if there are more tokens than positions and truncate is off.
  TokenizedText tokenize(std::string_view text, bool truncate = false) const;

  // Bytes that a run of seq_len tokens keeps with this selection.
  size_t memory_estimate(size_t seq_len, const capture::Selection& selection) const;

  // From text to trace. Throws: Error, also with the estimate if it is over the memory limit.
  capture::Trace run(std::string_view text, const capture::Selection& selection, const RunOptions& options = {}) const;

  // The last hidden state [1, seq, d_model], nothing recorded.
  tensor::Tensor encode(std::string_view text, const RunOptions& options = {}) const;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace clearhead::engine
