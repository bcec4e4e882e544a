// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/common.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "clearhead/apps/cli/console.h"
#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/memory.h"
#include "clearhead/base/parallel.h"
#include "clearhead/base/utf8.h"
#include "clearhead/engine/text_error.h"
#include "clearhead/format/known_models.h"
#include "clearhead/text/tokenizer.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/word.h"

namespace clearhead::apps {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;
constexpr int kPatience = 100;  // milliseconds
constexpr const char* kDefaultModel = "minilm";
constexpr const char* kManyScriptsModel = "multilingual-e5-small";

std::string read_standard_input() {
  std::string text;
  char block[1 << 16];
  for (;;) {
    base::check_interrupt();
    // A signal between the check and a read would go unnoticed: wait in short turns.
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kPatience) <= 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) base::fail("standard input", "a text", std::strerror(errno));
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > kMaxTextBytes) {
      base::fail("standard input", fmt::format("at most {} bytes of text", kMaxTextBytes), "more");
    }
  }
}

// The last line break of a file ends its text and is no part of it.
std::string without_final_line_break(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// The lines that are not empty, and their numbers from 1 among all.
std::vector<std::string> split_lines(const std::string& text, std::vector<size_t>& numbers) {
  std::vector<std::string> lines;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = without_final_line_break(text.substr(begin, end - begin));
    if (line.find_first_not_of(" \t") != std::string::npos) {
      lines.push_back(std::move(line));
      numbers.push_back(number);
    }
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> read_texts(const TextFlags& flags) {
  if (flags.text && flags.file) base::refuse("command line", "a text or --file", "both");
  if (!flags.text && !flags.file)
    base::refuse("command line", "a text, --file FILE, or - for standard input", "none of them");
  std::string content;
  if (flags.file && *flags.file != "-") {
    content = without_final_line_break(base::read_file(*flags.file, kMaxTextBytes));
  } else if (flags.file || *flags.text == "-") {
    content = without_final_line_break(read_standard_input());
  } else {
    content = *flags.text;
  }
  if (!flags.lines) return {std::move(content)};
  std::vector<std::string> all = split_lines(content, flags.line_numbers);
  if (all.empty()) base::refuse("text", "at least one line that is not empty", "none");
  return all;
}

// The letters and digits of a text that are beyond ASCII, as words: signs that no model knows choose none.
std::string foreign_words(const std::string& text) {
  std::string words;
  for (size_t at = 0; at < text.size();) {
    const base::CodePoint here = base::decode_utf8(std::string_view(text).substr(at));
    const bool foreign = here.value >= 0x80 && (text::property_table()[here.value] & text::kWord) != 0;
    words += foreign ? std::string_view(text).substr(at, here.length) : " ";
    at += here.length;
  }
  return words;
}

// What the default model has no piece for in these texts; empty: nothing that another model would know better.
std::string what_is_unknown(const std::vector<std::string>& texts) {
  std::string words;
  for (const std::string& text : texts) words += foreign_words(text) + " ";
  if (words.find_first_not_of(' ') == std::string::npos) return "";
  const std::string found = text::has_han(words) ? "some Chinese" : "some letters";
  const auto place = format::present(*format::find_known_model(kDefaultModel));
  if (!place) return found;
  const auto tokenizer = text::Tokenizer::from_file(*place / "tokenizer.json");
  return tokenizer.encode(words).unknown_count > 0 ? found : "";
}

void note_choice(const std::string& model, const std::string& reason = "") {
  note(fmt::format("model {}{} (choose another with --model)", model, reason));
}

// An error in one of many lines says which it was.
std::string work_on_line(const TextFlags& flags, size_t place, const TextWork& work) {
  const std::string name = flags.name_of(place);
  try {
    return work(flags.texts()[place], name);
  } catch (const base::Error&) {
    engine::throw_about(name);
  }
}

}  // namespace

views::Style OutputFlags::apply() const {
  if (threads > 0) base::set_num_threads(threads);
  views::Style style = detect_style();
  if (no_color) style.colors = views::Colors::none;
  style.ascii = ascii;
  if (!language.empty()) style.language = parse_language(language);
  if (!ascii || style.language == views::Language::en) return style;
  if (!language.empty()) {
    base::refuse("--ascii", "--lang en beside it", "--lang " + language, "ASCII has no Chinese characters");
  }
  style.language = views::Language::en;  // the locale's is a wish only
  return style;
}

const std::vector<std::string>& TextFlags::texts() const {
  if (!read) read = read_texts(*this);
  return *read;
}

std::string TextFlags::name_of(size_t index) const {
  return lines ? fmt::format("line {}", line_numbers.at(index)) : std::string();
}

engine::RunOptions TextFlags::run_options() const {
  engine::RunOptions options;
  options.truncate = truncate;
  if (!memory_limit.empty()) options.memory_limit = parse_bytes(memory_limit, "--memory-limit");
  options.rebuild = true;
  options.spill = std::filesystem::temp_directory_path();
  return options;
}

void add_output_flags(CLI::App& command, OutputFlags& flags) {
  command.add_flag("--json", flags.json, "one JSON document instead of a picture");
  command.add_option("--threads", flags.threads, "threads to use (default: all that this process may use)")
      ->check(CLI::Range(size_t{1}, size_t{1024}))
      ->type_name("N");
  command.add_flag("--ascii", flags.ascii, "draw with ASCII characters only; explanations are then in English");
  command.add_flag("--no-color", flags.no_color, "no colours (also: NO_COLOR in the environment)");
  command.add_option("--lang", flags.language, "language of the explanations: en or zh (default: of the locale)")
      ->type_name("LANG");
}

void add_model_flag(CLI::App& command, std::string& model) {
  command
      .add_option("--model", model,
                  "a name from `clearhead models`, a folder, a .safetensors or .gguf file, or org/name in the Hugging "
                  "Face cache")
      ->type_name("M");
}

void add_text_flags(CLI::App& command, TextFlags& flags) {
  command.add_option("text", flags.text, "the text to read; - for standard input")->type_name("TEXT");
  command.add_option("--file", flags.file, "read the text from a file")->type_name("FILE");
  command.add_flag("--lines", flags.lines, "every line is a text of its own");
  command.add_flag("--truncate", flags.truncate, "cut a text that is longer than the model's positions, and say so");
  command
      .add_option(
          "--memory-limit", flags.memory_limit,
          "most that a run may keep (default: half of what is free); what is recorded beyond goes to a temporary file")
      ->type_name("BYTES");
  add_model_flag(command, flags.model);
}

std::string model_or_default(const std::string& model, const std::vector<std::string>& texts) {
  if (!model.empty()) return model;
  std::string chosen = kDefaultModel, reason;
  if (const std::string unknown = what_is_unknown(texts); !unknown.empty()) {
    if (format::present(*format::find_known_model(kManyScriptsModel))) {
      chosen = kManyScriptsModel;
      reason = fmt::format(", as {} has no piece for {} of the text", kDefaultModel, unknown);
    } else {
      reason =
          fmt::format("; {} reads Chinese and other scripts: clearhead fetch {}", kManyScriptsModel, kManyScriptsModel);
    }
  }
  note_choice(chosen, reason);
  return chosen;
}

std::string writer_or_default(const std::string& model) {
  if (!model.empty()) return model;
  note_choice(kWriter);
  return kWriter;
}

void note_about(const std::string& name, const std::string& text) { note(name.empty() ? text : name + ": " + text); }

void report_invalid_text(const std::string& text, const std::string& name) {
  if (const auto place = base::first_invalid_utf8(text)) {
    note_about(name, fmt::format("byte {} of the text is not UTF-8; it and others like it are read as U+FFFD", *place));
  }
}

void report_tokenization(const engine::Session& session, const engine::TokenizedText& tokens, const std::string& name) {
  if (tokens.cut > 0) {
    note_about(name, fmt::format("the text has {} tokens more than the {} positions of {}; they were cut (--truncate)",
                                 tokens.cut, session.config().context_len, session.name()));
  }
  if (tokens.left_out > 0) {
    note_about(name, fmt::format("{} has no piece for {} bytes of the text; no token stands for them", session.name(),
                                 tokens.left_out));
  }
  if (tokens.begins_twice) {
    note_about(name, fmt::format("the text begins with {}, which {} puts in front of every text: it stands there twice",
                                 base::quoted(tokens.tokens[0].piece), session.name()));
  }
  if (tokens.unknown_count == 0) return;
  std::string line = fmt::format("{} has no piece for {} of {} tokens; they read as unknown", session.name(),
                                 tokens.unknown_count, tokens.tokens.size());
  if (text::has_han(tokens.text)) line += fmt::format("; {} knows Chinese", kManyScriptsModel);
  note_about(name, line);
}

std::string whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && rest == text.data() + text.size()) return "";
  return fmt::format("expected a whole number of 0 or more; found {}", base::quoted(text));
}

size_t parse_bytes(const std::string& text, const std::string& flag) {
  size_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
  size_t unit = 0;
  if (suffix.empty()) unit = 1;
  if (suffix == "K" || suffix == "k") unit = size_t{1} << 10;
  if (suffix == "M" || suffix == "m") unit = size_t{1} << 20;
  if (suffix == "G" || suffix == "g") unit = size_t{1} << 30;
  const auto bytes = base::checked_multiply(value, unit);
  if (error != std::errc() || unit == 0 || !bytes) {
    base::refuse(flag, "a number of bytes such as 800000000, 512M or 2G", base::quoted(text));
  }
  return *bytes;
}

size_t find_token(const std::vector<capture::TraceToken>& tokens, const std::string& name) {
  if (name.size() > 1 && name[0] == '#') {
    size_t index = 0;
    const auto [rest, error] = std::from_chars(name.data() + 1, name.data() + name.size(), index);
    if (error == std::errc() && rest == name.data() + name.size() && index < tokens.size()) return index;
    base::refuse("--from", fmt::format("#0 to #{}", tokens.size() - 1), base::quoted(name));
  }
  std::vector<std::string> places;
  size_t found = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != name && tokens[i].piece != name) continue;
    found = i;
    places.push_back(fmt::format("#{}", i));
  }
  if (places.size() == 1) return found;
  if (places.size() > 1) {
    base::refuse("--from", "one token", fmt::format("{} times {}", places.size(), base::quoted(name)),
                 fmt::format("name one of {}", fmt::join(places, ", ")));
  }
  std::vector<std::string> known;
  for (const auto& token : tokens) known.push_back(base::quoted(token.text, 24));
  if (known.size() > 24) {
    known.resize(24);
    known.push_back("...");
  }
  base::refuse("--from", fmt::format("one of the tokens {}", fmt::join(known, " ")), base::quoted(name));
}

void for_each_text(const TextFlags& flags, bool json, const TextWork& work) {
  if (!flags.lines) {
    std::string result = work(flags.texts().front(), "");
    if (!result.ends_with('\n')) result += '\n';
    return write_output(result);
  }
  std::string document = "[";  // one JSON document, whole or not at all
  for (size_t i = 0; i < flags.texts().size(); ++i) {
    std::string result = work_on_line(flags, i, work);
    while (result.ends_with('\n')) result.pop_back();
    if (json) {
      document += (i == 0 ? "" : ",\n") + result;
    } else {
      write_output((i == 0 ? "" : "\n") + result + "\n");
    }
  }
  if (json) write_output(document + "]\n");
}

}  // namespace clearhead::apps
