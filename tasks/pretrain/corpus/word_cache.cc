#include "tasks/pretrain/corpus/word_cache.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace etc {
namespace {

// Longer ones seldom come again.
constexpr size_t kLongestCachedWord = 32;

}  // namespace

WordCache::WordCache(const Tokenizer* tokenizer, size_t most_words)
    : tokenizer_(tokenizer), most_words_(most_words) {
  for (const char blank : tokenizer->cutting_places().blanks) {
    is_blank_[static_cast<unsigned char>(blank)] = true;
  }
}

bool WordCache::MayCut(absl::string_view text) const {
  const CuttingPlaces& places = tokenizer_->cutting_places();
  return !places.blanks.empty() &&
         std::none_of(places.joining.begin(), places.joining.end(),
                      [text](const std::string& joining) {
                        return absl::StrContains(text, joining);
                      });
}

void WordCache::Encode(absl::string_view text, std::vector<int32_t>* ids) {
  if (!MayCut(text)) {
    EncodeAnew(text, ids);
    return;
  }
  const auto is_blank = [this](char byte) {
    return is_blank_[static_cast<unsigned char>(byte)];
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (is_blank(*at)) {
      ++at;
      continue;
    }
    const char* const begin = at;
    while (at != end && !is_blank(*at)) {
      ++at;
    }
    EncodeWord({begin, static_cast<size_t>(at - begin)}, ids);
  }
}

void WordCache::EncodeWord(absl::string_view word, std::vector<int32_t>* ids) {
  if (word.size() > kLongestCachedWord) {
    EncodeAnew(word, ids);
    return;
  }
  const Word& found = Find(word);
  const auto first = ids_.begin() + found.begin;
  ids->insert(ids->end(), first, first + found.size);
}

const WordCache::Word& WordCache::Find(absl::string_view word) {
  const auto found = words_.find(word);
  if (found != words_.end()) {
    return found->second;
  }
  if (words_.size() == most_words_) {
    words_.clear();
    ids_.clear();
  }
  const size_t begin = ids_.size();
  EncodeAnew(word, &ids_);
  return words_
      .emplace(word, Word{.begin = static_cast<uint32_t>(begin),
                          .size = static_cast<uint32_t>(ids_.size() - begin)})
      .first->second;
}

void WordCache::EncodeAnew(absl::string_view text,
                           std::vector<int32_t>* ids) const {
  for (const Token& piece : tokenizer_->Encode(text)) {
    ids->push_back(piece.id);
  }
}

}  // namespace etc
