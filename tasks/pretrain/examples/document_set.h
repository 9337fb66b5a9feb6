#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_SET_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_SET_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace etc {

// Tokens of a text, and of each whether it continues the word of the one before
// it (doc/pretraining.md 8). Both are of one length.
struct Pieces {
  std::vector<int32_t> ids;
  std::vector<uint8_t> continues_word;

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  void Add(int32_t id, bool continues) {
    ids.push_back(id);
    continues_word.push_back(continues ? 1 : 0);
  }
};

// Documents 0, ..., size() - 1 of sentences 0, ..., num_sentences() - 1, none
// of them empty. All methods may be called from several threads.
class DocumentSet {
 public:
  virtual ~DocumentSet() = default;

  virtual int64_t size() const = 0;
  virtual int64_t num_sentences(int64_t document) const = 0;
  // Puts the tokens of a sentence behind `pieces`.
  //   kDataLoss  they are no tokens: what they were read from is damaged
  virtual absl::Status AppendSentence(int64_t document, int64_t sentence,
                                      Pieces* pieces) const = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_SET_H_
