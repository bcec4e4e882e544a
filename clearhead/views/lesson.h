// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/terminal.h"

namespace clearhead::views {

// A number that a step shows and where it stands in the trace. One that is computed from numbers of the trace says how
// in `rule` and names no place.
struct LessonNumber {
  std::string label;
  double value = 0;
  std::optional<capture::Stage> stage;
  size_t layer = 0;
  std::vector<size_t> index;  // in the stage's shape
  std::string rule;
  bool in_picture = false;  // the picture prints it already
};

// Pictures, as data: how they look is decided where they are drawn.
struct TokenTable {};  // pieces, ids, offsets of the trace
struct VectorStrip {
  std::vector<float> values;
};  // one vector, as a line that rises and falls
struct StripList {
  std::vector<std::string> labels;  // as they are printed
  std::vector<std::vector<float>> strips;
};
struct BarList {
  std::vector<size_t> tokens;   // labels, as indices of tokens; or, if empty, heads in order
  std::vector<double> lengths;  // of the bars, on a scale of their largest
  std::vector<double> values;   // printed beside them
};
struct HeadRows {
  size_t layer = 0, query = 0;
};  // where one token looks, in each head
struct WeightMap {
  size_t layer = 0, head = 0;
};  // the whole map of one head
struct MaskGrid {
  size_t layer = 0, head = 0;
};  // which tokens each token may see
using Picture =
    std::variant<std::monostate, TokenTable, VectorStrip, StripList, BarList, HeadRows, WeightMap, MaskGrid>;

// One step of the computation, told for one token and one head.
struct LessonStep {
  std::string name;  // of the stage, or of the thought ("tokens", "roles", "split", ...)
  std::string title, plain;
  std::string formula;              // empty: there is none
  std::vector<std::string> shapes;  // "[6, 512] x [512, 512] -> [6, 512]"
  std::vector<LessonNumber> numbers;
  Picture picture;
};

// What the lesson follows.
struct LessonFocus {
  size_t layer = 0, head = 0;
  size_t query = 0;  // the token that looks
  size_t key = 0;    // the token that it looks at most, itself and special tokens aside if it looks at others
};

// Pairs of a head's dimensions that rotary positions turn: i and i + dim / 2, or 2 i and 2 i + 1 if interleaved.
struct RotaryPairs {
  size_t dim = 0;
  bool interleaved = false;
};

struct LessonOptions {
  LessonFocus focus;
  bool input_split = false;           // heads are cut from the input, not from the projections
  bool embedding_norm = false;        // a layer norm follows the sum of the embeddings
  bool embedding_scaled = false;      // the rows of the token embedding are multiplied by a number
  bool pre_norm = false;              // attention reads its input normed
  bool head_norm = false;             // the query and key of each head are normed
  bool causal = false;                // no token sees those behind it
  std::optional<RotaryPairs> rotary;  // absent: positions are not turned in
  std::optional<float> score_scale;   // where it is not 1 / sqrt(head_dim)
  std::optional<float> soft_cap;      // what scores are kept below by tanh
  std::optional<size_t> window;       // tokens before it that a token of this layer sees at most
  Language language = Language::en;
};

// The focus that tells most: the strongest link of the most telling head; with from, of the head that is most telling
// for that token. Without a link of over a hundredth: the other word that the token (the last word) looks at most in
// any head; without such a word, what it looks at most. Throws: Error if the trace has no weights.
LessonFocus choose_focus(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order,
                         std::optional<size_t> from);

// The key that query looks at most in a head, itself and special tokens aside if others are there.
size_t strongest_key(const capture::Trace& trace, size_t layer, size_t head, size_t query);

// All steps, from text to output projection, in the order of the stage table; what a model does not do (turned
// positions, shared key heads, a mask) has no step. The trace has every stage of the layer. Throws: Error naming a
// stage that was not recorded.
std::vector<LessonStep> make_lesson(const capture::Trace& trace, const LessonOptions& options);

// The steps for people. only: the name of one step, or empty for all. Throws: Error (usage) naming the steps there are.
std::string draw_lesson(const capture::Trace& trace, const std::vector<LessonStep>& steps, std::string_view only,
                        const Style& style);

// {"model", "text", "tokens", "layer", "head", "query", "key", "steps"}; schema: docs/schema/lesson.schema.json.
std::string lesson_json(const capture::Trace& trace, const std::vector<LessonStep>& steps, const LessonFocus& focus);

}  // namespace clearhead::views
