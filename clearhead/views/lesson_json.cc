// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "clearhead/views/json.h"
#include "clearhead/views/lesson.h"

namespace clearhead::views {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(const LessonNumber& number) {
  Json row;
  row["label"] = number.label;
  row["value"] = std::isfinite(number.value) ? Json(number.value) : Json();
  if (!number.stage) {
    row["rule"] = number.rule;
    return row;
  }
  const auto& stage = capture::info(*number.stage);
  row["tensor"] = capture::Trace::tensor_name(*number.stage, number.layer);
  row["stage"] = stage.name;
  row["index"] = number.index;
  return row;
}

}  // namespace

std::string lesson_json(const capture::Trace& trace, const std::vector<LessonStep>& steps, const LessonFocus& focus) {
  const auto& info = trace.info();
  // tokens have one form in all documents
  Json document = Json::parse(tokenize_json(info.model, info.text, info.tokens));
  document["layer"] = focus.layer;
  document["head"] = focus.head;
  document["query"] = focus.query;
  document["key"] = focus.key;
  Json list = Json::array();
  for (const LessonStep& step : steps) {
    Json row;
    row["name"] = step.name;
    row["title"] = step.title;
    row["plain"] = step.plain;
    row["formula"] = step.formula.empty() ? Json() : Json(step.formula);
    row["shapes"] = step.shapes;
    row["numbers"] = Json::array();
    for (const LessonNumber& number : step.numbers) row["numbers"].push_back(number_json(number));
    list.push_back(std::move(row));
  }
  document["steps"] = std::move(list);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace clearhead::views
