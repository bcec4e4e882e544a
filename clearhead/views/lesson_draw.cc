// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/lesson.h"
#include "clearhead/views/lesson_builder.h"
#include "clearhead/views/lesson_texts.h"
#include "clearhead/views/pen.h"
#include "clearhead/views/wrap.h"

namespace clearhead::views {
namespace {

constexpr size_t kIndent = 6, kLabel = 14, kBar = 28, kMaxRows = 24, kRange = 24;
constexpr Rgb kPositive{86, 180, 233}, kNegative{235, 120, 50};

// Draws the pictures of one lesson.
class LessonDrawer {
 public:
  LessonDrawer(const capture::Trace& trace, const Style& style) : trace_(trace), pen_(style), texts_(style.language) {}

  std::string step(const LessonStep& step, size_t place, size_t count) const {
    std::string page = heading(step, place, count);
    for (const std::string& line : wrap(step.plain, text_width(), pen_.style())) page += indent() + line + "\n";
    for (const std::string& part : {facts(step), picture(step) + numbers(step)}) {
      if (!part.empty()) page += "\n" + part;
    }
    return page + "\n";
  }

  std::string ending() const {
    std::string page;
    for (const std::string& line : wrap(texts_.text("end"), text_width(), pen_.style())) {
      page += indent() + ink(line, Ink::dim) + "\n";
    }
    return page;
  }

 private:
  std::string ink(std::string_view text, Ink what) const { return pen_.write(text, what).str(); }
  static std::string indent() { return std::string(kIndent, ' '); }
  std::string label(std::string_view name) const { return ink(fit(name, kLabel, pen_.style()), Ink::dim); }
  size_t strip_width() const { return std::max(text_width(), kLabel + kRange + 8) - kRange; }
  size_t text_width() const { return std::min<size_t>(pen_.style().width, 100) - kIndent - 1; }

  std::string heading(const LessonStep& step, size_t place, size_t count) const {
    const std::string number = fmt::format("{:>2}/{}", place + 1, count);
    return pen_.line(std::min<size_t>(pen_.style().width, 100)).str() + "\n" + ink(number, Ink::dim) + " " +
           ink(printable(step.title, pen_.style()), Ink::title) + "  " + ink(step.name, Ink::dim) + "\n\n";
  }

  std::string fact(std::string_view name, std::string_view text) const {
    std::string page;
    for (const std::string& line : wrap(text, text_width() - kLabel, pen_.style())) {
      page += indent() + label(page.empty() ? texts_.text(name) : "") + line + "\n";
    }
    return page;
  }

  std::string facts(const LessonStep& step) const {
    std::string page;
    if (!step.formula.empty()) page += fact("formula", step.formula);
    for (const std::string& shape : step.shapes) page += fact("shapes", shape);
    return page;
  }

  std::string numbers(const LessonStep& step) const {
    std::string line;
    for (const LessonNumber& number : step.numbers) {
      if (number.in_picture) continue;
      line += fmt::format("{}{} = {}", line.empty() ? "" : ", ", number.label, short_number(number.value));
    }
    if (line.empty()) return "";
    return fact("numbers", line);
  }

  std::string token_label(size_t token, size_t columns) const {
    return fit(trace_.info().tokens[token].text, columns, pen_.style());
  }

  // One character per group of values: its height says where the value of the group that is farthest from zero lies.
  std::string strip(const std::vector<float>& values, size_t columns) const {
    const size_t count = std::min(columns, values.size());
    const auto [lowest, highest] = std::ranges::minmax_element(values);
    const double range = std::max(1e-30, double(*highest) - *lowest);
    std::string line;
    for (size_t i = 0; i < count; ++i) {
      float value = 0;
      for (size_t k = i * values.size() / count; k < (i + 1) * values.size() / count; ++k) {
        if (std::abs(values[k]) > std::abs(value)) value = values[k];
      }
      const auto level = std::min<size_t>(7, static_cast<size_t>((value - *lowest) / range * 8));
      std::string mark(1, ".:-=+*#@"[level]);
      if (!pen_.style().ascii) {
        mark.clear();
        base::append_utf8(mark, static_cast<char32_t>(0x2581 + level));
      }
      line += pen_.paint(mark, value < 0 ? kNegative : kPositive, {}).str();
    }
    return line + ink(fmt::format("  {} .. {}", short_number(*lowest), short_number(*highest)), Ink::dim);
  }

  std::string picture(const LessonStep& step) const {
    return std::visit([&](const auto& data) { return draw(data); }, step.picture);
  }

  std::string draw(std::monostate) const { return ""; }

  std::string draw(const TokenTable&) const {
    std::string page;
    const std::string table = draw_tokens(trace_.info().tokens, pen_.style());
    for (size_t begin = 0; begin < table.size();) {
      const size_t end = std::min(table.find('\n', begin), table.size());
      if (end > begin) page += "    " + table.substr(begin, end - begin);
      page += "\n";
      begin = end + 1;
    }
    return page;
  }

  std::string draw(const VectorStrip& picture) const { return indent() + strip(picture.values, strip_width()) + "\n"; }

  std::string draw(const StripList& picture) const {
    std::string page;
    for (size_t i = 0; i < picture.strips.size(); ++i) {
      page += indent() + ink(fit(picture.labels[i], kLabel, pen_.style()), Ink::dim) +
              strip(picture.strips[i], strip_width() - kLabel) + "\n";
    }
    return page;
  }

  std::string draw(const BarList& picture) const {
    double largest = 1e-30, smallest = 0;
    for (double length : picture.lengths) {
      if (!std::isfinite(length)) continue;  // a token that may not be seen
      largest = std::max(largest, length);
      smallest = std::min(smallest, length);
    }
    std::string page;
    const size_t rows = std::min(picture.values.size(), kMaxRows);
    for (size_t i = 0; i < rows; ++i) {
      const std::string label = picture.tokens.empty()
                                    ? fit(fmt::format("{} {}", texts_.text("head_word"), i), kLabel, pen_.style())
                                    : token_label(picture.tokens[i], kLabel);
      const double length = std::max(picture.lengths[i], smallest);
      const double fraction = (length - smallest) / (largest - smallest);
      page += indent() + label + " " + pen_.bar(fraction, kBar).str() +
              fmt::format("  {:>9}\n", short_number(picture.values[i]));
    }
    if (rows < picture.values.size()) {
      page +=
          indent() +
          ink(fmt::format("{} {} {}", pen_.ellipsis(), picture.values.size() - rows, texts_.text("more")), Ink::dim) +
          "\n";
    }
    return page;
  }

  std::string draw(const HeadRows& picture) const {
    std::string page;
    const capture::WeightSource& weights = trace_.source(capture::Stage::weights, picture.layer);
    std::vector<float> row(weights.key_len());
    for (size_t head = 0; head < weights.num_heads(); ++head) {
      weights.row(0, head, picture.query, row);
      const size_t key = strongest_key(trace_, picture.layer, head, picture.query);
      const std::string label = fit(fmt::format("{} {}", texts_.text("head_word"), head), kLabel, pen_.style());
      page += indent() + ink(label, Ink::dim) + token_label(key, kLabel) + " " + pen_.bar(row[key], kBar).str() +
              fmt::format("  {:>9}\n", short_number(row[key]));
    }
    return page;
  }

  std::string draw(const WeightMap& picture) const {
    const MapOptions options;
    return draw_map(attention_map(trace_, picture.layer, picture.head, options), options, pen_.style());
  }

  // A row for each token that looks, a column for each that is seen or not.
  std::string draw(const MaskGrid& picture) const {
    const capture::WeightSource& scores = trace_.source(capture::Stage::scores, picture.layer);
    const size_t rows = std::min(scores.query_len(), kMaxRows), columns = std::min(scores.key_len(), kMaxRows);
    const bool cut = columns < scores.key_len();
    std::vector<float> row(scores.key_len());
    std::string page;
    for (size_t i = 0; i < rows; ++i) {
      scores.row(0, picture.head, i, row);
      page += indent() + token_label(i, kLabel) + " ";
      for (size_t j = 0; j < columns; ++j) {
        const bool seen = row[j] != -std::numeric_limits<float>::infinity();
        page += " " + (seen ? std::string(pen_.shade(1)) : ink(pen_.style().ascii ? "." : pen_.dot(), Ink::dim));
      }
      page += cut ? fmt::format(" {}\n", pen_.ellipsis()) : "\n";
    }
    if (cut)
      page += indent() +
              ink(fmt::format("{} {} {}", pen_.ellipsis(), scores.query_len() - rows, texts_.text("more")), Ink::dim) +
              "\n";
    return page;
  }

  const capture::Trace& trace_;
  Pen pen_;
  LessonTexts texts_;
};

}  // namespace

std::string draw_lesson(const capture::Trace& trace, const std::vector<LessonStep>& steps, std::string_view only,
                        const Style& style) {
  const LessonDrawer drawer(trace, style);
  std::string page;
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    names.push_back(steps[i].name);
    if (only.empty() || steps[i].name == only) page += drawer.step(steps[i], i, steps.size());
  }
  if (page.empty())
    base::refuse("lesson", fmt::format("one of the steps {}", fmt::join(names, ", ")), base::quoted(only));
  return page + drawer.ending();
}

}  // namespace clearhead::views
