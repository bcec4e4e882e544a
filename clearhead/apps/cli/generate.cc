// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "clearhead/apps/cli/commands.h"
#include "clearhead/apps/cli/common.h"
#include "clearhead/apps/cli/console.h"
#include "clearhead/apps/cli/sampling_flags.h"
#include "clearhead/apps/cli/watch.h"
#include "clearhead/apps/cli/writing_notes.h"
#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/utf8.h"
#include "clearhead/engine/chat.h"
#include "clearhead/views/terminal.h"

namespace clearhead::apps {
namespace {

constexpr size_t kLooks = 3;  // heads shown of each new token
constexpr std::string_view kRecognise = "auto";
constexpr size_t kTokenColumns = 16;
constexpr size_t kLookGap = 2;

struct Flags {
  OutputFlags output;
  std::optional<std::string> prompt, file;
  std::string model, memory_limit, chat, system;
  engine::GenerateOptions options;
  std::string cache = "float", compute = "float";
  bool attend = false, chat_given = false;
};

std::string read_prompt(const Flags& flags) {
  TextFlags text;
  text.text = flags.prompt;
  text.file = flags.file;
  return text.texts().front();
}

// Words for every token that a head may have looked at: those of the prompt, then the new ones.
class Words {
 public:
  explicit Words(const engine::TokenizedText& prompt) {
    for (const capture::TraceToken& token : prompt.tokens) words_.push_back(token.text);
  }
  void add(const std::string& word) {
    const size_t begin = word.find_first_not_of(' ');  // words of the prompt are without it too
    words_.push_back(begin == std::string::npos ? word : word.substr(begin));
  }
  const std::string& operator[](size_t index) const { return words_[index]; }

 private:
  std::vector<std::string> words_;
};

// The text of a model as it may be written: line breaks and tabs stay, no other control character reaches the terminal.
std::string shown(std::string_view text, const views::Style& style) {
  std::string output;
  while (!text.empty()) {
    const base::CodePoint point = base::decode_utf8(text);
    const std::string_view one = text.substr(0, point.length);
    const bool is_control = point.value < 0x20 || (point.value >= 0x7f && point.value < 0xa0);
    const bool stays = one == "\n" || one == "\t" || !(is_control || (style.ascii && point.value > 0x7f));
    output += stays ? std::string(one) : views::printable(one, style);
    text.remove_prefix(point.length);
  }
  return output;
}

// A word in at most so many columns.
std::string shortened(const std::string& word, size_t columns, const views::Style& style) {
  const std::string shown = views::printable(word, style);
  return views::display_width(shown) <= columns ? shown : views::fit(shown, columns, style);
}

// Of --attend: the new token, and where the heads looked that looked hardest, on more lines where one is too narrow.
std::string look_line(const std::string& token, const std::vector<engine::Look>& looks, const Words& words,
                      const views::Style& style) {
  const size_t begin = std::min(kTokenColumns, style.width / 4);
  std::string page = views::fit(views::printable(token, style), begin, style);
  size_t used = begin;
  for (const engine::Look& look : looks) {
    const std::string head = fmt::format("layer {} head {}: ", look.layer, look.head);
    const std::string share = fmt::format(" {:.0f} %", 100 * static_cast<double>(look.weight));
    const size_t left = style.width - begin - kLookGap, rest = head.size() + share.size();
    const std::string word = shortened(words[look.key], left > rest ? left - rest : 1, style);
    const size_t columns = kLookGap + rest + views::display_width(word);
    if (used > begin && used + columns > style.width) {
      page += "\n" + std::string(begin, ' ');
      used = begin;
    }
    page += std::string(kLookGap, ' ') + head + word + share;
    used += columns;
  }
  page.erase(page.find_last_not_of(' ') + 1);
  return page + "\n";
}

nlohmann::ordered_json looks_json(const std::vector<std::vector<engine::Look>>& looks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& of_token : looks) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const engine::Look& look : of_token) {
      row.push_back({{"layer", look.layer}, {"head", look.head}, {"key", look.key}, {"weight", look.weight}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string generated_json(const std::string& model, const engine::Generated& result, bool attend) {
  nlohmann::ordered_json document;
  document["model"] = model;
  document["prompt_ids"] = result.prompt_ids;
  document["ids"] = result.ids;
  document["text"] = result.text;
  document["stopped_by"] = result.stopped_by;
  if (attend) document["looks"] = looks_json(result.looks);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Before a model is loaded: none is a style that the files of the model tell.
std::optional<engine::ChatStyle> named_chat(const Flags& flags) {
  if (!flags.chat_given || flags.chat == kRecognise) return std::nullopt;
  if (const auto style = engine::find_chat(flags.chat)) return style;
  base::refuse("--chat", fmt::format("one of {}, {}", kRecognise, fmt::join(engine::chat_names(), ", ")),
               base::quoted(flags.chat));
}

engine::TokenizedText asked(const Flags& flags, std::optional<engine::ChatStyle> chat_style,
                            const engine::Session& session) {
  const std::string prompt = read_prompt(flags);
  report_invalid_text(prompt);
  if (!flags.chat_given) return session.tokenize(prompt, true);
  const engine::ChatStyle style = chat_style ? *chat_style : engine::recognise_chat(session.chat_template());
  const engine::ChatPrompt chat = engine::chat_prompt(style, flags.system, prompt);
  return session.tokenize_quoted(chat.text, chat.quoted, true);
}

// Whoever interrupts a text finds the next prompt on a line of its own.
engine::Generated write_on(const engine::Session& session, const engine::TokenizedText& prompt,
                           const engine::GenerateOptions& options, const Flags& flags) {
  try {
    return engine::generate(session, prompt, options);
  } catch (const base::Interrupted&) {
    if (!flags.output.json && !flags.attend) write_output("\n");
    throw;
  }
}

void run(const Flags& flags) {
  const views::Style style = flags.output.apply();
  const auto chat_style = named_chat(flags);
  const engine::Session session = open_session(writer_or_default(flags.model));
  const engine::TokenizedText prompt = asked(flags, chat_style, session);
  engine::GenerateOptions options = flags.options;
  if (!flags.memory_limit.empty()) options.memory_limit = parse_bytes(flags.memory_limit, "--memory-limit");
  if (flags.compute == "bf16") options.compute = linear::Compute::bfloat16;
  if (flags.cache == "bf16") options.cache = attention::Precision::bfloat16;
  Words words(prompt);
  if (flags.attend) options.looks = kLooks;
  if (flags.attend && !flags.output.json) {
    options.on_token = [&](const std::string& text, const std::vector<engine::Look>& looks) {
      write_output(look_line(text, looks, words, style));
      words.add(text);
    };
  } else if (!flags.output.json) {
    options.on_text = [&](std::string_view text) { write_output(shown(text, style)); };
  }
  const engine::Generated result = write_on(session, prompt, options, flags);
  if (flags.output.json) {
    write_output(generated_json(session.name(), result, flags.attend));
    return report_non_finite_logits(result);
  }
  if (!flags.attend) write_output("\n");
  report_non_finite_logits(result);
  if (flags.compute == "bf16") {
    note(
        fmt::format("products in bf16: what is multiplied is rounded to 8 bits; at the first tokens of the prompt the "
                    "logits are off by {:.2g} % of their standard deviation, and the text may be another",
                    100 * result.compute_error));
  }
  if (flags.cache == "bf16") {
    note(fmt::format("cache in bf16: {:.1f} MB; rounding changed keys and values by {:.2g} % (root mean square)",
                     double(result.cache_bytes) / 1e6, 100 * result.cache_error.relative()));
  }
  report_context(session, result);
}

}  // namespace

void add_generate(CLI::App& program, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *program.add_subcommand("generate", "Continue a text, and show where heads look on the way");
  command.add_option("prompt", flags->prompt, "the text to continue; - for standard input")->type_name("TEXT");
  command.add_option("--file", flags->file, "read the prompt from a file")->type_name("FILE");
  add_model_flag(command, flags->model);
  command.add_option("--max-tokens", flags->options.max_tokens, "write at most N tokens (default 128)")
      ->check(whole_number)
      ->type_name("N");
  add_sampling_flags(command, flags->options.sampling);
  command
      .add_option("--stop", flags->options.stop,
                  "stop before this text, and leave out its tokens; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  CLI::Option* chat =
      command
          .add_option("--chat", flags->chat,
                      fmt::format("put the prompt as a question, in the style {} (told by the model), {}", kRecognise,
                                  fmt::join(engine::chat_names(), ", ")))
          ->type_name("STYLE");
  command.add_option("--system", flags->system, "with --chat: an instruction before the question")
      ->needs(chat)
      ->type_name("TEXT");
  command
      .add_option("--compute", flags->compute,
                  "what products are computed in: float (default), or bf16, faster on machines with AVX512_BF16")
      ->check(CLI::IsMember({"float", "bf16"}))
      ->type_name("TYPE");
  command
      .add_option("--cache", flags->cache,
                  "what keys and values are kept in: float (default), or bf16, half the memory, rounded")
      ->check(CLI::IsMember({"float", "bf16"}))
      ->type_name("TYPE");
  command.add_flag("--attend", flags->attend, "show of each new token where the heads looked that looked hardest");
  command
      .add_option("--memory-limit", flags->memory_limit,
                  "refuse a run that would keep more (default: half of what is free)")
      ->type_name("BYTES");
  add_output_flags(command, flags->output);
  command.callback([flags, chat, &action] {
    flags->chat_given = chat->count() > 0;
    action = [flags] { run(*flags); };
  });
}

}  // namespace clearhead::apps
