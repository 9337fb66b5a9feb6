#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_EXAMPLE_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/pattern_builders.h"
#include "tasks/pretrain/examples/document_set.h"
#include "tasks/pretrain/examples/draws.h"
#include "tasks/pretrain/examples/masking.h"
#include "tasks/pretrain/pretrain_example.h"

namespace etc {

// Part of a document, with its sentences.
struct DocumentPart {
  Pieces pieces;
  // End of each sentence; the last is `pieces.size()`. None is empty.
  std::vector<int64_t> sentence_ends;

  int64_t num_sentences() const {
    return static_cast<int64_t>(sentence_ends.size());
  }
};

// Options of ETC's examples (doc/pretraining.md 9).
struct PackedExampleOptions {
  // `max_predictions` is that of a part, not of the sequence it is packed into.
  MaskedLmOptions mlm = {.whole_words = true};
  // Share of the sentences that are hidden for CPC; 0 for none.
  double cpc_rate = 0.1;
  // The global tokens of sentences, and of hidden ones.
  int32_t sentence_global_id = 1;
  int32_t hidden_global_id = 2;
  PatternOptions pattern = {.hard_g2l = true};
};

// Selects the hidden ones of `num_sentences` sentences, ascending: min(n - 1,
// max(1, floor(n * cpc_rate + u))) of them for a draw u, and none, with no
// draw, if there are fewer than 2 or the rate is 0 (doc/pretraining.md 9.2).
std::vector<int32_t> DrawHiddenSentences(int32_t num_sentences, double cpc_rate,
                                         Draws& draws);

// Writes an example of ETC part by part.
//
//   long:    the tokens of all parts, one after the other; type kPlainLongType
//   global:  one token for each sentence; type kPlainGlobalType
//   pattern: parts see nothing of each other, in any of the four pieces; a long
//            token belongs to the global token of its sentence
class PackedExampleWriter {
 public:
  // `options` must outlive the writer.
  explicit PackedExampleWriter(const PackedExampleOptions* options);

  // Adds a part: draws its hidden sentences from `hide`, then masks words of
  // the others, of which NumPredictions says how many, with draws from `mask`
  // (which may be the same).
  void Add(const DocumentPart& part, Draws& hide, Draws& mask);

  // The example of what was added; the writer is not to be used again.
  std::shared_ptr<PretrainExample> Finish();

 private:
  // An example as far as it is written, with what its pattern is made from.
  struct Written {
    std::shared_ptr<PretrainExample> example =
        std::make_shared<PretrainExample>();
    std::vector<int32_t> long_examples;
    std::vector<int32_t> global_examples;
    std::vector<int32_t> sentences;

    void AddSentence(const int32_t* ids, int64_t size, int32_t global_id,
                     int32_t example_id);
    void SetPattern(const PatternOptions& options);
  };

  void MaskWords(const DocumentPart& part, const std::vector<uint8_t>& hidden,
                 Draws& draws);

  const PackedExampleOptions* const options_;
  int32_t num_parts_ = 0;
  Written context_;
  Written targets_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_PACKED_EXAMPLE_H_
