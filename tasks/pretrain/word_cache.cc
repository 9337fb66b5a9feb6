#include "tasks/pretrain/word_cache.h"

namespace etc {
namespace {

// Longer ones seldom come again.
constexpr size_t kLongestCachedWord = 32;
// When there are so many, it begins anew; the frequent ones are back at once.
constexpr size_t kMostCachedWords = size_t{1} << 17;

bool IsAsciiSpace(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

}  // namespace

void WordCache::Encode(absl::string_view text, std::vector<int32_t>* ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (IsAsciiSpace(*at)) {
      ++at;
      continue;
    }
    const char* const begin = at;
    while (at != end && !IsAsciiSpace(*at)) {
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
  auto found = words_.find(word);
  if (found == words_.end()) {
    if (words_.size() == kMostCachedWords) {
      words_.clear();
      ids_.clear();
    }
    const size_t begin = ids_.size();
    EncodeAnew(word, &ids_);
    const Range range = {.begin = static_cast<uint32_t>(begin),
                         .size = static_cast<uint32_t>(ids_.size() - begin)};
    found = words_.emplace(word, range).first;
  }
  const auto first = ids_.begin() + found->second.begin;
  ids->insert(ids->end(), first, first + found->second.size);
}

void WordCache::EncodeAnew(absl::string_view text,
                           std::vector<int32_t>* ids) const {
  for (const Token& piece : tokenizer_->Encode(text)) {
    ids->push_back(piece.id);
  }
}

}  // namespace etc
