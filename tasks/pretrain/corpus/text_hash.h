#ifndef ETC_TASKS_PRETRAIN_CORPUS_TEXT_HASH_H_
#define ETC_TASKS_PRETRAIN_CORPUS_TEXT_HASH_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "base/random.h"

namespace etc {

// A number, uniform in [0, 2^64), that follows from the bytes of `text` alone:
// the same in every version, for it decides which documents are held out.
// Eight bytes at a time, the last ones with zeros behind them, and the length:
//
//   h = size;  h = Mix64(h ^ word)  for each word, little-endian
//
// Not secure against deliberate collisions.
inline uint64_t HashText(absl::string_view text) {
  uint64_t hash = Mix64(text.size());
  for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at,
                std::min(sizeof(word), text.size() - at));
    hash = Mix64(hash ^ word);
  }
  return hash;
}

// The hash of a document from that of its sentences before this one (0 if it
// is the first) and HashText of this one.
inline uint64_t AddToDocumentHash(uint64_t before, uint64_t sentence) {
  return CombineSeeds({before, sentence});
}

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_TEXT_HASH_H_
