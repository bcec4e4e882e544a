// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "clearhead/base/error.h"
#include "clearhead/views/json_writer.h"
#include "clearhead/views/labels.h"

namespace clearhead::views {
namespace {

using capture::Stage;

void write_tokens(JsonWriter& json, const std::vector<capture::TraceToken>& tokens) {
  json.key("tokens").begin_list();
  for (const auto& token : tokens) {
    json.begin_object().member("text", token.text).key("id");
    // A word of several pieces has none.
    token.id < 0 ? json.null() : json.value(token.id);
    json.key("offsets").begin_list().value(token.begin).value(token.end).end_list();
    json.member("special", token.special).end_object();
  }
  json.end_list();
}

void write_head(JsonWriter& json, const HeadSummary& head) {
  json.begin_object().member("layer", head.layer).member("head", head.head).member("kind", name_of(head.kind));
  json.key("links").begin_list();
  for (const Link& link : head.links)
    json.begin_object().member("query", link.query).member("key", link.key).member("weight", link.weight).end_object();
  json.end_list();
  json.member("entropy", head.entropy).member("strongest", head.strongest).member("previous", head.previous);
  json.member("next", head.next).member("self", head.self).member("first", head.first);
  json.member("special", head.special).member("mean_distance", head.mean_distance).end_object();
}

// The keys of one row in every head, largest weight first, no more than top of them.
void write_rows(JsonWriter& json, const capture::Trace& trace, const std::vector<HeadSummary>& heads, size_t query,
                const MapOptions& options) {
  const auto& tokens = trace.info().tokens;
  if (query >= tokens.size())
    base::refuse("from", fmt::format("a token below {}", tokens.size()), fmt::format("{}", query));
  json.key("rows").begin_list();
  for (const HeadSummary& head : heads) {
    std::vector<float> row = row_of(*head_weights(trace, head.layer, head.head), query);
    for (size_t key = 0; options.hide_special && key < row.size(); ++key)
      if (tokens[key].special) row[key] = 0;
    json.begin_object().member("layer", head.layer).member("head", head.head).member("query", query);
    json.key("keys").begin_list();
    for (const size_t key : largest_of_row(row, options.top))
      json.begin_object().member("key", key).member("weight", row[key]).end_object();
    json.end_list().end_object();
  }
  json.end_list();
}

// One number per row of the map, or null where the run kept none or pieces were joined.
void write_row_numbers(JsonWriter& json, const std::optional<std::vector<float>>& reference,
                       const std::optional<std::vector<float>>& sum) {
  json.key("row_reference");
  reference ? json.list(*reference) : json.null();
  json.key("row_sum");
  sum ? json.list(*sum) : json.null();
  json.key("lse");
  if (!reference || !sum) {
    json.null();
    return;
  }
  json.begin_list();
  for (size_t i = 0; i < sum->size(); ++i) {
    const double log_sum =
        (static_cast<double>((*reference)[i]) + std::log2(static_cast<double>((*sum)[i]))) * std::numbers::ln2;
    json.value(static_cast<float>(log_sum));
  }
  json.end_list();
}

// A stage [1, heads, seq] of one head, without the hidden tokens.
std::optional<std::vector<float>> row_numbers(const capture::Trace& trace, Stage stage, size_t layer, size_t head,
                                              const MapOptions& options) {
  const capture::TraceInfo& info = trace.info();
  const auto place = std::find(info.heads.begin(), info.heads.end(), head);
  const size_t n = info.tokens.size();
  const tensor::Shape expected{1, info.heads.size(), n};
  if (options.words || place == info.heads.end() || !trace.has(stage, layer)) return {};
  const tensor::TensorView values = trace.tensor(stage, layer);
  if (values.shape() != expected) return {};
  const auto all = values.as<float>().subspan(static_cast<size_t>(place - info.heads.begin()) * n, n);
  std::vector<float> kept;
  for (size_t i = 0; i < n; ++i)
    if (!options.hide_special || !info.tokens[i].special) kept.push_back(all[i]);
  return kept;
}

}  // namespace

std::string tokenize_json(const std::string& model, const std::string& text,
                          const std::vector<capture::TraceToken>& tokens) {
  JsonWriter json;
  json.begin_object().member("model", model).member("text", text);
  write_tokens(json, tokens);
  json.end_object();
  return std::move(json).take();
}

std::string attend_head_json(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options) {
  std::string document;
  write_attend_head_json(trace, layer, head, options, [&](std::string_view part) { document += part; });
  return document;
}

void write_attend_head_json(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options,
                            const std::function<void(std::string_view)>& write) {
  MapOptions all_rows = options;
  all_rows.from.reset();
  const AttentionMap map = attention_map(trace, layer, head, all_rows);
  const size_t n = map.tokens.size();
  JsonWriter json;
  json.begin_object().member("model", map.model).member("text", trace.info().text);
  write_tokens(json, map.tokens);
  json.member("layer", layer).member("head", head).key("weights").begin_list();
  for (size_t query = 0; query < n; ++query) {
    json.list(map.row(query));
    write(json.take_part());
  }
  json.end_list();
  write_row_numbers(json, row_numbers(trace, Stage::row_reference, layer, head, options),
                    row_numbers(trace, Stage::row_sum, layer, head, options));
  json.end_object();
  write(json.take_part());
}

std::string attend_json(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const MapOptions& options) {
  const capture::TraceInfo& info = trace.info();
  JsonWriter json;
  json.begin_object().member("model", info.model).member("text", info.text);
  write_tokens(json, info.tokens);
  json.member("num_layers", info.num_layers).member("num_heads", info.num_heads).key("heads").begin_list();
  for (const HeadSummary& head : heads) write_head(json, head);
  json.end_list();
  if (options.from) write_rows(json, trace, heads, *options.from, options);
  json.end_object();
  return std::move(json).take();
}

}  // namespace clearhead::views
