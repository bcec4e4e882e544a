// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/engine/session.h"

namespace clearhead::engine {

struct BatchOptions {
  bool truncate = false;                    // cut to the model's positions instead of refusing
  std::optional<size_t> memory_limit = {};  // bytes; absent: half of what is free
  size_t token_budget = 4096;               // most tokens of the texts that run together, fewer where memory is short;
                                            // one text alone may have more
  // What errors call a text, on any thread; absent: "text N of M".
  std::function<std::string(size_t index)> name_of = {};
  // Called on the calling thread after each batch.
  std::function<void(size_t texts_done, size_t num_texts)> progress = {};
};

// What became of one text.
struct BatchItem {
  size_t index;                    // of the text
  const TokenizedText& tokenized;  // its text and tokens stand in the trace
  std::span<const float> hidden;   // [seq, d_model]: the last hidden state
  const capture::Trace& trace;     // what was selected; stages of [query, key] are rebuilt when somebody looks
};

// Thousands of texts through one model: those of like length run together, packed behind each other without padding, as
// many as the token budget holds, each with the bits that it has alone. Results come in the order of the texts; no more
// are held than a few batches have.
class Batch {
 public:
  // session must outlive the batch.
  Batch(const Session& session, capture::Selection selection, BatchOptions options = {});
  ~Batch();

  // Makes something of each item with make, on all threads, and hands it to take in the order of the texts, on the
  // calling thread. make must not depend on who calls it.
  // Every text is cut into tokens before the first runs, so that one that cannot be read is met at once.
  // Throws: Error beginning with the name of the text ("text N of M: ") for a text that cannot be read or that make
  // fails on; likewise, with the estimate and before the first runs, for a text that alone would pass the memory limit;
  // what take throws; base::Interrupted between batches.
  void run(std::span<const std::string> texts, const std::function<std::string(const BatchItem&)>& make,
           const std::function<void(size_t index, std::string made)>& take);

 private:
  class Runner;
  std::unique_ptr<Runner> runner_;
};

}  // namespace clearhead::engine
