// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/token_texts.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "clearhead/base/utf8.h"

namespace clearhead::engine {
namespace {

constexpr std::string_view kNoCharacter = "\xef\xbf\xbd";
constexpr size_t kMostBytes = 4;  // of a character, which has no more tokens than bytes
constexpr size_t kMostOpen = 16;  // tokens that each end one character and begin another

// Where each character begins, and the end.
std::vector<size_t> boundaries(std::string_view text) {
  std::vector<size_t> places = {0};
  while (places.back() < text.size()) {
    places.push_back(places.back() + base::decode_utf8(text.substr(places.back())).length);
  }
  return places;
}

// The text without the parts of characters at its end.
std::string_view whole_part(std::string_view text) {
  while (text.ends_with(kNoCharacter)) text.remove_suffix(kNoCharacter.size());
  return text;
}

// How far the text goes with a token: whole characters, and whether there is a part of one behind.
struct Reach {
  size_t whole;
  bool open;
};

// [ids]
std::vector<Reach> reaches_of(const Session& session, std::span<const int64_t> ids) {
  std::vector<Reach> reaches;
  for (size_t i = 1; i <= ids.size(); ++i) {
    const std::string text = session.decode(ids.first(i));
    const std::string_view whole = whole_part(text);
    reaches.push_back({boundaries(whole).size() - 1, whole.size() < text.size()});
  }
  return reaches;
}

// A token shows the characters from the first that was not whole before it to the one within which it ends.
std::vector<std::string> each_of(std::string_view text, const std::vector<Reach>& reaches) {
  const std::vector<size_t> begins = boundaries(text);
  std::vector<std::string> texts;
  size_t begin = 0;
  for (const Reach& reach : reaches) {
    const size_t end = std::min(reach.whole + (reach.open ? 1 : 0), begins.size() - 1);
    texts.emplace_back(text.substr(begins[begin], begins[end] - begins[begin]));
    begin = reach.whole;
  }
  return texts;
}

}  // namespace

std::vector<std::string> TokenTexts::add(int64_t id) {
  const std::string alone = session_.decode({&id, 1});
  if (alone.find(kNoCharacter) == std::string::npos) {
    std::vector<std::string> texts = finish();
    texts.push_back(alone);
    return texts;
  }
  open_.push_back(id);
  return settle();
}

std::vector<std::string> TokenTexts::finish() {
  std::vector<std::string> texts;
  for (const int64_t id : std::exchange(open_, {})) texts.push_back(session_.decode({&id, 1}));
  return texts;
}

std::vector<std::string> TokenTexts::settle() {
  std::vector<std::string> texts;
  while (!open_.empty()) {
    const std::string text = session_.decode(open_);
    const std::string_view whole = whole_part(text);
    const std::vector<Reach> reaches = reaches_of(session_, open_);
    const size_t back = std::min(reaches.size(), kMostBytes);
    const bool broken = whole.find(kNoCharacter) != std::string_view::npos;
    if (!broken && whole.size() == text.size()) {
      std::ranges::move(each_of(text, reaches), std::back_inserter(texts));
      open_.clear();
    } else if (broken || open_.size() > kMostOpen ||
               (back == kMostBytes && reaches[reaches.size() - back].whole == reaches.back().whole)) {
      texts.push_back(session_.decode({open_.data(), 1}));  // its bytes are part of no character
      open_.erase(open_.begin());
    } else {
      break;
    }
  }
  return texts;
}

}  // namespace clearhead::engine
