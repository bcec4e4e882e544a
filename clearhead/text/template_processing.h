// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "clearhead/text/post_processor.h"

namespace clearhead::text {

// Special tokens around a text, each with its type id: "[CLS] text [SEP]". Also what BertProcessing does.
class TemplateProcessing final : public PostProcessor {
 public:
  // The text itself, or special tokens.
  struct Item {
    bool is_text = false;
    std::vector<uint32_t> ids = {};  // of special tokens
    uint32_t type_id = 0;
  };

  explicit TemplateProcessing(std::vector<Item> items) : items_(std::move(items)) {}

  // Special tokens have an empty span at 0.
  void process(std::vector<Piece>& pieces, const Original& original, bool add_special) const override;

 private:
  std::vector<Item> items_;
};

// One after the other.
class PostProcessorSequence final : public PostProcessor {
 public:
  explicit PostProcessorSequence(std::vector<std::unique_ptr<PostProcessor>> steps) : steps_(std::move(steps)) {}
  void process(std::vector<Piece>& pieces, const Original& original, bool add_special) const override {
    for (const auto& step : steps_) step->process(pieces, original, add_special);
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> steps_;
};

}  // namespace clearhead::text
