#ifndef ETC_TASKS_PRETRAIN_CORPUS_WORD_CACHE_H_
#define ETC_TASKS_PRETRAIN_CORPUS_WORD_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The ids of a text's pieces: text is cut at the tokenizer's cutting places
// (Tokenizer::cutting_places), and the parts, most of which were seen before,
// are looked up; without such places it is encoded as a whole. Equal to
// Tokenizer::Encode, id by id. Memory: 20 MB at most by default. For one
// thread.
class WordCache {
 public:
  // `tokenizer` must outlive it. The cache is cleared when it has `most_words`;
  // the frequent words are back at once.
  explicit WordCache(const Tokenizer* tokenizer,
                     size_t most_words = size_t{1} << 17);

  // Adds the ids of the pieces of `text` to `*ids`.
  void Encode(absl::string_view text, std::vector<int32_t>* ids);

 private:
  struct Word {
    // Range of `ids_`.
    uint32_t begin = 0;
    uint32_t size = 0;
  };

  bool MayCut(absl::string_view text) const;
  void EncodeWord(absl::string_view word, std::vector<int32_t>* ids);
  const Word& Find(absl::string_view word);
  void EncodeAnew(absl::string_view text, std::vector<int32_t>* ids) const;

  const Tokenizer* const tokenizer_;
  const size_t most_words_;
  std::array<bool, 256> is_blank_ = {};
  absl::flat_hash_map<std::string, Word> words_;
  std::vector<int32_t> ids_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_WORD_CACHE_H_
