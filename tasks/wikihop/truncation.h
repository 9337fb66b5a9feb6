#ifndef ETC_TASKS_WIKIHOP_TRUNCATION_H_
#define ETC_TASKS_WIKIHOP_TRUNCATION_H_

#include <cstdint>
#include <vector>

namespace etc {

// How many sentences of each document are kept, from its first on, so that at
// most `max_sentences` remain and they hold at most `max_pieces` pieces
// (wikihop spec 3.2). `sentence_pieces[d][k]` is the number of pieces of
// sentence k of document d; neither limit may be negative.
//
// As long as there is too much of either, the document with most sentences
// (sentences, even when only pieces are too many) loses its last one. Among
// equals the one that has waited longest: a document that lost a sentence goes
// to the end of the queue. A document may end with none.
std::vector<int64_t> KeptSentences(
    const std::vector<std::vector<int64_t>>& sentence_pieces,
    int64_t max_sentences, int64_t max_pieces);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_TRUNCATION_H_
