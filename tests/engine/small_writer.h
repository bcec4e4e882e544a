// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "clearhead/engine/generate.h"
#include "clearhead/engine/session.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::tests {

inline constexpr size_t kPositions = 64, kVocab = 48;
inline const std::string kPrompt = "the cat";

// Pieces of one byte each: letters, marks, a space, and bytes that begin and go on characters of two and of three. The
// first `pieces` of them.
inline std::string byte_tokenizer(size_t pieces = kVocab) {
  std::string vocabulary = R"("<end>": 0)";
  size_t id = 1;
  const auto add = [&](std::string_view piece) {
    if (id < pieces) vocabulary += fmt::format(R"(, "{}": {})", piece, id++);
  };
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyz!?.,;:")) add(std::string_view(&c, 1));
  for (const char* piece : {"\u0120", "\u00e4", "\u00c2", "\u00c3", "\u00c4", "\u00c5", "\u00c6", "\u00a9", "\u00b0",
                            "\u00b1", "\u00b2", "\u00b3", "\u00bc", "\u00bd", "\u00be"})
    add(piece);
  return fmt::format(
      R"({{"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [{{"id": 0, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
                         "normalized": false, "special": true}}],
      "normalizer": null, "post_processor": null,
      "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
      "decoder": {{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}},
      "model": {{"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                 "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": {{{}}},
                 "merges": []}}}})",
      vocabulary);
}

// Overwrites the first values of the final norm's gain, which every logit is made of.
inline void damage_norm(const std::filesystem::path& file, float value) {
  std::string bytes = tests::read_bytes(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto json = nlohmann::json::parse(bytes.substr(8, header));
  const size_t begin = json["model.norm.weight"]["data_offsets"][0].get<size_t>();
  std::memcpy(bytes.data() + 8 + header + begin, &value, sizeof value);
  tests::write_bytes(file, bytes);
}

// What a small writer is.
struct Small {
  std::string end = "null";  // its eos_token_id
  std::string model = "llama";
  size_t pieces = kVocab;            // of its tokenizer
  std::string generation = {};       // its generation_config.json
  std::optional<float> damage = {};  // what one parameter of its last norm becomes
};

inline std::filesystem::path decoders() {
  return std::filesystem::path(CLEARHEAD_TEST_DATA).parent_path().parent_path() / "model/data/decoders";
}

// A decoder of random parameters that reads bytes.
inline engine::Session small_writer(const Small& small = {}) {
  const std::filesystem::path source = decoders() / small.model;
  const tests::TemporaryFolder folder;
  std::string config = tests::read_bytes(source / "config.json");
  const std::string old_end = R"("eos_token_id": 0)";
  config.replace(config.find(old_end), old_end.size(), R"("eos_token_id": )" + small.end);
  tests::write_bytes(folder / "config.json", config);
  tests::write_bytes(folder / "tokenizer.json", byte_tokenizer(small.pieces));
  if (!small.generation.empty()) tests::write_bytes(folder / "generation_config.json", small.generation);
  std::filesystem::copy(source / "model.safetensors", folder / "model.safetensors");
  if (small.damage) damage_norm(folder / "model.safetensors", *small.damage);
  return engine::Session::open(folder.path().string());
}

inline const engine::Session& writer() {
  static const engine::Session session = small_writer();
  return session;
}

// Options that draw every token about as often.
inline engine::GenerateOptions wild(uint64_t seed, size_t max_tokens = 40) {
  engine::GenerateOptions options{.max_tokens = max_tokens};
  options.sampling = {.temperature = 1e6, .seed = seed};
  return options;
}

}  // namespace clearhead::tests
