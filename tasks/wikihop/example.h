#ifndef ETC_TASKS_WIKIHOP_EXAMPLE_H_
#define ETC_TASKS_WIKIHOP_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "tasks/data/example.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Token ids and type ids (doc/wikihop.md 3.1), the same with every vocabulary.
inline constexpr int32_t kWikihopSentenceToken = 1;
inline constexpr int32_t kWikihopQueryToken = 3;
inline constexpr int32_t kWikihopCandidateToken = 4;
inline constexpr int32_t kWikihopDocumentToken = 5;

inline constexpr int32_t kWikihopDocumentType = 1;
inline constexpr int32_t kWikihopQueryType = 3;
inline constexpr int32_t kWikihopCandidateType = 4;
// Types of global tokens.
inline constexpr int32_t kWikihopSentenceGlobalType = 0;
inline constexpr int32_t kWikihopQueryGlobalType = 5;
inline constexpr int32_t kWikihopCandidateGlobalType = 6;
inline constexpr int32_t kWikihopDocumentGlobalType = 7;

// Method of finding mentions of candidates in sentences (doc/wikihop.md 3.4).
enum class MentionAlignment {
  // A run of the sentence's pieces equal to the pieces of the candidate: the
  // rule of the official code. With a vocabulary that has upper case, names in
  // the sentence do not match candidates, which are in lower case.
  kPieces,
  // Every occurrence of the candidate in the lower-case sentence, from the
  // piece of its first character to that of its last: for such vocabularies.
  kCharacters,
};

// Pieces [first, last] of a text, both inclusive, that name a candidate.
struct Mention {
  int32_t candidate = 0;
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const Mention&, const Mention&) = default;
};

// A candidate as mentions are compared with it.
struct CandidatePieces {
  std::string text;  // in lower case
  std::vector<Token> pieces;
};

// The object "wikihop" of a fine-tuning configuration: README.md has its
// fields. Absent ones keep their default, which is the published recipe.
struct WikihopOptions {
  InputOptions input = {};
  // Over all documents.
  int64_t max_num_sentences = 200;
  // True if candidate and query global tokens see the whole input in spite of
  // the hard g2l mask. The published recipe has both; the official program's
  // own default is neither.
  bool candidate_ignore_hard_g2l = true;
  bool query_ignore_hard_g2l = true;
  // True if mentions carry the relative id of a link to their candidate.
  bool enable_l2g_linking = true;
  MentionAlignment mention_alignment = MentionAlignment::kPieces;
  // True if a feed-forward block stands between encoder and logits.
  bool add_final_layer = true;
  // Share of the target that is spread over all candidates, in [0, 1).
  double label_smoothing = 0.0;
};

template <>
struct ConfigTable<WikihopOptions> {
  using O = WikihopOptions;
  static constexpr absl::string_view kAlignments[] = {"pieces", "characters"};
  static constexpr auto kFields = std::make_tuple(
      Field("add_final_layer", &O::add_final_layer,
            "a feed-forward block between encoder and logits"),
      Field("label_smoothing", &O::label_smoothing,
            "share of the target spread over the candidates of the question",
            {.least = 0, .below = 1}),
      Field("max_num_sentences", &O::max_num_sentences,
            "sentences of all documents that are read", {.least = 0}),
      Field("candidate_ignore_hard_g2l", &O::candidate_ignore_hard_g2l,
            "candidates see all long tokens in spite of a hard mask; true is "
            "the published recipe, the official program's own default is "
            "false"),
      Field("query_ignore_hard_g2l", &O::query_ignore_hard_g2l,
            "the same of the tokens of the query as "
            "`candidate_ignore_hard_g2l`"),
      Field("enable_l2g_linking", &O::enable_l2g_linking,
            "mentions of a candidate in the text are linked to its global "
            "token"),
      Field("mention_alignment", &O::mention_alignment,
            "how mentions are found; `\"characters\"` finds names in text that "
            "keeps its case",
            {.one_of = kAlignments}));
};

// One question as the model reads it (doc/wikihop.md 3.3):
//
//   long:    pieces of candidates, of the query, of the kept sentences
//   global:  one token a candidate (global index = candidate), one a piece of
//            the query, and for each document one, then one a sentence
struct WikihopExample : Example {
  std::string query;
  std::vector<std::string> candidates;
  // Index of the answer; none if the record has no answer.
  std::optional<int32_t> label;
  // In the long input, those of candidates in themselves first; a token in
  // several of them is linked to the last candidate.
  std::vector<Mention> mentions;
  int64_t num_documents = 0;
  int64_t num_sentences = 0;  // kept ones
  // Losses by truncation.
  int64_t dropped_sentences = 0;
  int64_t dropped_pieces = 0;

  int64_t num_candidates() const {
    return static_cast<int64_t>(candidates.size());
  }
};

// Returns the number of sentences of each document that are kept, from its
// first on, so that at most `max_sentences` remain and they hold at most
// `max_pieces` pieces (doc/wikihop.md 3.2). `sentence_pieces[d][k]` is the
// number of pieces of sentence k of document d; neither limit may be negative
// (c10::Error).
//
// While there are too many of either, the document with most sentences
// (sentences, even when only pieces are too many) loses its last one. Among
// equals the one that has waited longest: a document that lost a sentence goes
// to the end of the queue. A document may end with none.
std::vector<int64_t> KeptSentences(
    const std::vector<std::vector<int64_t>>& sentence_pieces,
    int64_t max_sentences, int64_t max_pieces);

// The mentions in `sentence`, whose pieces are `pieces`: by candidates, then
// from left to right, overlapping ones too. A candidate whose text does not
// occur in the lower-case sentence is not mentioned; there is no regard for
// borders of words ("oslo" is mentioned in "oslo ##s").
std::vector<Mention> FindMentions(
    absl::string_view sentence, const std::vector<Token>& pieces,
    const std::vector<CandidatePieces>& candidates, MentionAlignment alignment,
    const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_EXAMPLE_H_
