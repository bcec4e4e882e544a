// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/table.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/base/error.h"
#include "clearhead/engine/generate.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/known_models.h"
#include "clearhead/format/safetensors.h"

namespace clearhead::apps {
namespace {

struct Flags {
  OutputFlags output;
  std::string model;
  size_t tokens = 128;
  bool all = false;
};

// What a GGUF file says about itself under one key.
struct Metadatum {
  std::string key;
  std::string text;      // for people: short, strings in quotes
  nlohmann::json value;  // as what it is; for an array its text
};

// What there is to say about a model.
struct Inspection {
  std::string name, path;
  std::optional<model::ModelConfig> config;  // absent: the model cannot be run, and a warning says why
  std::vector<Metadatum> metadata;           // of a GGUF file
  std::vector<format::TensorEntry> tensors;
  std::vector<size_t> not_finite;  // [tensors] NaN and infinite values; 1 where a block has such a scale
  std::vector<std::string> warnings;
  size_t tensor_bytes = 0, parameters = 0;
  size_t tokens = 0, run_bytes = 0;                         // of a run that keeps weights and row sums
  std::optional<size_t> writing_bytes, writing_bytes_bf16;  // of a decoder that writes, with either cache
};

size_t bad_values(const format::Checkpoint& checkpoint, const format::TensorEntry& entry) {
  if (entry.block_type) {
    return tensor::first_bad_scale(*entry.block_type, checkpoint.blocks(entry.name).bytes).has_value() ? 1 : 0;
  }
  if (!entry.dtype) return 0;
  const format::NonFinite bad = format::count_non_finite(checkpoint.view(entry.name));
  return bad.nans + bad.infinities;
}

Metadatum metadatum(const format::GgufMetadata& metadata, const std::string& key, const format::GgufValue& value) {
  Metadatum result{key, value.text(), nullptr};
  if (value.is_array) {
    result.value = result.text;
  } else if (value.type == format::GgufType::string) {
    result.value = *metadata.find_word(key);
  } else {  // a number or a truth value, whose text JSON reads too unless it is not finite
    const auto parsed = nlohmann::json::parse(result.text, nullptr, false);
    if (!parsed.is_discarded()) result.value = parsed;
  }
  return result;
}

// What a session knows of the model. A GGUF file is shown also if it cannot be run.
void inspect_session(const Flags& flags, bool must_run, Inspection& result) {
  try {
    const engine::Session session = open_model(flags.model);
    result.name = session.name();
    result.config = session.config();
    result.warnings = session.warnings();
    capture::Selection selection;
    selection.stages = {capture::Stage::weights, capture::Stage::row_reference, capture::Stage::row_sum};
    result.tokens = flags.tokens;
    result.run_bytes = session.memory_estimate(flags.tokens, selection, true);
    if (!session.transformer().has(capture::Stage::logits)) return;
    result.writing_bytes = engine::writing_bytes(session, flags.tokens);
    result.writing_bytes_bf16 = engine::writing_bytes(session, flags.tokens, attention::Precision::bfloat16);
  } catch (const base::Error& error) {
    if (must_run) throw;
    result.warnings.push_back(fmt::format("cannot be run: {}", error.what()));
  }
}

// A line for each of the first tensors with values that are not finite.
void warn_of_values(Inspection& result) {
  constexpr size_t kNamed = 3;
  size_t tensors = 0;
  for (size_t i = 0; i < result.tensors.size(); ++i) {
    const format::TensorEntry& entry = result.tensors[i];
    if (result.not_finite[i] == 0 || entry.block_type || tensors++ >= kNamed) continue;
    result.warnings.push_back(
        fmt::format("{}: {} of its values are not finite", base::quoted(entry.name), result.not_finite[i]));
  }
  if (tensors > kNamed) result.warnings.push_back(fmt::format("so have {} more tensors", tensors - kNamed));
}

Inspection inspect(const Flags& flags) {
  const format::ResolvedModel found = format::resolve_model(flags.model);
  const format::Checkpoint checkpoint = format::Checkpoint::open(found.path);
  Inspection result;
  result.name = found.display_name;
  result.path = found.path.string();
  inspect_session(flags, checkpoint.gguf_metadata() == nullptr, result);
  for (const std::string& warning : checkpoint.warnings()) {
    if (std::ranges::find(result.warnings, warning) == result.warnings.end()) result.warnings.push_back(warning);
  }
  if (const format::GgufMetadata* metadata = checkpoint.gguf_metadata()) {
    for (const auto& [key, value] : metadata->values()) {
      result.metadata.push_back(metadatum(*metadata, key, value));
    }
  }
  result.tensor_bytes = checkpoint.total_bytes();
  const Progress progress("looking for values that are no numbers");
  for (const std::string& name : checkpoint.names()) {
    const format::TensorEntry& entry = checkpoint.entry(name);
    result.tensors.push_back(entry);
    result.parameters += entry.shape.elements();
    result.not_finite.push_back(bad_values(checkpoint, entry));
  }
  warn_of_values(result);
  return result;
}

nlohmann::ordered_json architecture_json(const model::ModelConfig& config) {
  nlohmann::ordered_json row;
  row["family"] = config.family;
  row["num_layers"] = config.num_layers;
  row["num_heads"] = config.attention.num_heads;
  row["num_kv_heads"] = config.attention.num_kv_heads;
  row["head_dim"] = config.attention.head_dim;
  row["d_model"] = config.d_model;
  row["d_ff"] = config.d_ff;
  row["vocab_size"] = config.vocab_size;
  row["context_len"] = config.context_len;
  row["attention"] = nlohmann::ordered_json::parse(config.attention.json());
  return row;
}

std::string inspection_json(const Inspection& result) {
  nlohmann::ordered_json document;
  document["model"] = result.name;
  document["path"] = result.path;
  document["architecture"] = result.config ? architecture_json(*result.config) : nlohmann::ordered_json();
  if (!result.metadata.empty()) {
    nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
    for (const Metadatum& one : result.metadata) metadata[one.key] = one.value;
    document["metadata"] = std::move(metadata);
  }
  document["parameters"] = result.parameters;
  document["bytes"] = result.tensor_bytes;
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (size_t i = 0; i < result.tensors.size(); ++i) {
    const auto& entry = result.tensors[i];
    const auto sizes = entry.shape.sizes();
    tensors.push_back({{"name", entry.name},
                       {"dtype", entry.dtype_name},
                       {"shape", std::vector<size_t>(sizes.begin(), sizes.end())},
                       {"bytes", entry.end - entry.begin},
                       {"not_finite", result.not_finite[i]}});
  }
  document["tensors"] = std::move(tensors);
  document["warnings"] = result.warnings;
  document["run"] = {{"tokens", result.tokens}, {"bytes", result.run_bytes}};
  if (result.writing_bytes) {
    document["writing"] = {{"tokens", result.tokens},
                           {"bytes", *result.writing_bytes},
                           {"bytes_with_bf16_cache", *result.writing_bytes_bf16}};
  }
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double megabytes(size_t bytes) { return double(bytes) / 1e6; }

// Bytes of each element type.
std::string types_line(const Inspection& result) {
  std::map<std::string, size_t> bytes_of;
  for (const auto& entry : result.tensors) bytes_of[entry.dtype_name] += entry.end - entry.begin;
  std::string line;
  for (const auto& [name, bytes] : bytes_of)
    line += fmt::format("{}{} {:.1f} MB", line.empty() ? "" : ", ", name, megabytes(bytes));
  return line;
}

std::string tensor_table(const Inspection& result, bool all, const views::Style& style) {
  constexpr size_t kShort = 24;
  const size_t shown = all ? result.tensors.size() : std::min(kShort, result.tensors.size());
  Table table({{"", 5}, {"", 16}, {"", 12, true}, {""}, {""}}, 3);
  for (size_t i = 0; i < shown; ++i) {
    const auto& entry = result.tensors[i];
    const std::string bad =
        result.not_finite[i] > 0 ? fmt::format("{} values are not finite", result.not_finite[i]) : "";
    table.add({entry.dtype_name, entry.shape.text(), fmt::format("{:.3f} MB", megabytes(entry.end - entry.begin)),
               views::printable(entry.name, style), bad});
  }
  const size_t left = result.tensors.size() - shown;
  return table.draw(style, 2) + (left > 0 ? fmt::format("  ... {} more (--all)\n", left) : "");
}

std::string fact(std::string_view name, const std::string& text, const views::Style& style) {
  return wrapped(fmt::format("  {:<12} ", name), text, style);
}

std::string architecture_lines(const model::ModelConfig& config, const views::Style& style) {
  const attention::AttentionConfig& attention = config.attention;
  return fact("family", config.family, style) + fact("layers", fmt::format("{}", config.num_layers), style) +
         fact("heads",
              fmt::format("{} of {} dimensions, {} kv heads", attention.num_heads, attention.head_dim,
                          attention.num_kv_heads),
              style) +
         fact("d_model", fmt::format("{}, d_ff {}", config.d_model, config.d_ff), style) +
         fact("vocabulary", fmt::format("{}, positions {}", config.vocab_size, config.context_len), style);
}

std::string inspection_page(const Inspection& result, bool all, const views::Style& style) {
  std::string page = wrapped("", fmt::format("{}  ({})", result.name, result.path), style) + "\n";
  if (result.config) page += architecture_lines(*result.config, style);
  page += fact("parameters",
               fmt::format("{:.1f} million in {} tensors: {}", double(result.parameters) / 1e6, result.tensors.size(),
                           types_line(result)),
               style);
  if (result.config) {
    page += wrapped("  ",
                    fmt::format("a run of {} tokens keeps {:.1f} MB, and every weight can be rebuilt from it",
                                result.tokens, megabytes(result.run_bytes)),
                    style);
  }
  if (result.writing_bytes) {
    page += wrapped("  ",
                    fmt::format("reading and writing {} tokens keeps {:.1f} MB, with --cache bf16 {:.1f} MB",
                                result.tokens, megabytes(*result.writing_bytes), megabytes(*result.writing_bytes_bf16)),
                    style);
  }
  page += "\n" + tensor_table(result, all, style);
  if (all) {
    for (const Metadatum& one : result.metadata) page += wrapped("  ", one.key + " = " + one.text, style);
  }
  for (const std::string& warning : result.warnings) page += wrapped("  ", "warning: " + warning, style);
  return page;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("inspect", "Show a model's architecture, tensors, types and memory");
  command.add_option("model", flags->model, "a name from `clearhead models`, a folder, a file, or org/name")
      ->required()
      ->type_name("M");
  command.add_option("--tokens", flags->tokens, "state the memory of a run of N tokens (default 128)")
      ->check(CLI::Range(size_t{1}, size_t{1} << 40))
      ->type_name("N");
  command.add_flag("--all", flags->all, "list every tensor, and the metadata of a GGUF file");
  add_output_flags(command, flags->output);
  command.callback([flags, &action] {
    action = [flags] {
      const views::Style style = flags->output.apply();
      const Inspection result = inspect(*flags);
      write_output(flags->output.json ? inspection_json(result) + "\n" : inspection_page(result, flags->all, style));
    };
  });
}

}  // namespace clearhead::apps
