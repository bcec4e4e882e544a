// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/metaspace.h"

#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {

void Metaspace::rewrite(const AlignedText& text, Span word, AlignedText& result) const {
  using Prepend = MetaspaceConfig::Prepend;
  const std::string_view bytes = text.bytes().substr(0, word.end);
  const bool marked = bytes[word.begin] == ' ' || bytes.substr(word.begin).starts_with(config_.mark);
  const auto first = static_cast<uint32_t>(code_point_at(bytes, word.begin).length);
  const Span origin = text.original({word.begin, word.begin + first});
  const bool wanted = config_.prepend == Prepend::always || (config_.prepend == Prepend::first && origin.begin == 0);
  if (wanted && !marked) result.replace(config_.mark, origin);
  for (size_t at = word.begin; at < word.end;) {
    const size_t space = std::min(bytes.find(' ', at), bytes.size());
    result.keep(bytes.substr(at, space - at), text, static_cast<uint32_t>(at));
    at = space;
    if (at == word.end) break;
    const auto place = static_cast<uint32_t>(at++);
    result.replace(config_.mark, text.original({place, place + 1}));
  }
}

void Metaspace::split(AlignedText& text, std::vector<Span>& words) const {
  AlignedText result = text.empty_like();
  result.reserve(text.bytes().size() + text.bytes().size() / 2 + config_.mark.size());
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 5);
  for (const Span word : words) {
    if (word.size() == 0) continue;
    const auto begin = static_cast<uint32_t>(result.bytes().size());
    rewrite(text, word, result);
    const std::string_view bytes = result.bytes();
    uint32_t from = begin;
    while (config_.split) {
      const size_t mark = bytes.find(config_.mark, from + 1);
      if (mark == std::string_view::npos) break;
      cut.push_back({from, static_cast<uint32_t>(mark)});
      from = static_cast<uint32_t>(mark);
    }
    cut.push_back({from, static_cast<uint32_t>(bytes.size())});
  }
  text = std::move(result);
  words.swap(cut);
}

NextSink MetaspaceDecoder::stream(NextSink next) const {
  return rewrite_step(std::move(next), [this](std::string& piece, bool is_first) {
    replace_all(piece, config_.mark, is_first && config_.prepend != MetaspaceConfig::Prepend::never ? "" : " ");
  });
}

}  // namespace clearhead::text
