// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "clearhead/engine/session.h"
#include "clearhead/views/terminal.h"

namespace CLI {
class App;
}

namespace clearhead::apps {

// Flags that every command has.
struct OutputFlags {
  bool json = false;
  bool ascii = false;
  bool no_color = false;
  std::string language;  // empty: of the locale
  size_t threads = 0;    // 0: all that the process may use

  // Reads the flags into a style; sets the size of the thread pool.
  views::Style apply() const;
};

// Flags of the commands that read a text.
struct TextFlags {
  std::optional<std::string> text;  // "-": standard input
  std::optional<std::string> file;
  bool lines = false;
  bool truncate = false;
  std::string memory_limit;                              // bytes, or with a suffix K, M, G; empty: half of what is free
  std::string model;                                     // empty: chosen by the text
  mutable std::optional<std::vector<std::string>> read;  // what texts() gave
  mutable std::vector<size_t> line_numbers;              // of them with --lines, from 1, empty lines counted

  // All texts to work on: one, or one per line with --lines; read once. Throws: Error.
  const std::vector<std::string>& texts() const;
  // What notes and errors call one of the texts: "line N" with --lines, else nothing.
  std::string name_of(size_t index) const;
  engine::RunOptions run_options() const;
};

void add_output_flags(CLI::App& command, OutputFlags& flags);
void add_text_flags(CLI::App& command, TextFlags& flags);
void add_model_flag(CLI::App& command, std::string& model);

// The name of the model to open for these texts; says on standard error which one was chosen, and why, if the user
// named none: minilm, or a model that reads Chinese where minilm lacks pieces for it.
std::string model_or_default(const std::string& model, const std::vector<std::string>& texts = {});

// The model that continues texts if the user named none; its name, said on standard error, where model is empty.
inline constexpr const char* kWriter = "smollm2-135m-instruct";
std::string writer_or_default(const std::string& model);

// Says on standard error where a text is not UTF-8, if it is not.
void report_invalid_text(const std::string& text, const std::string& name = "");

// Says on standard error what the reader should know about a tokenised text: unknown pieces, what was cut,
// bytes that were left out. name is what
// TextFlags::name_of says of it.
void report_tokenization(const engine::Session& session, const engine::TokenizedText& tokens,
                         const std::string& name = "");

// A note about the text of this name, if it has one.
void note_about(const std::string& name, const std::string& text);

// A check for flags that take a count or an index: empty, or what is wrong with the text (it would wrap unnoticed).
std::string whole_number(const std::string& text);

// "512M" -> 536870912. Throws: Error (usage) naming the flag.
size_t parse_bytes(const std::string& text, const std::string& flag);

// Token of the text named by its text ("sat") or by "#INDEX". Throws: Error (usage) if there is none or more than one.
size_t find_token(const std::vector<capture::TraceToken>& tokens, const std::string& name);

// Runs work for each text of flags and writes what it returns: as one JSON document (an array with --lines) or one
// picture after the other. An error names the text that it is about; work is told what it is called.
using TextWork = std::function<std::string(const std::string& text, const std::string& name)>;
void for_each_text(const TextFlags& flags, bool json, const TextWork& work);

}  // namespace clearhead::apps
