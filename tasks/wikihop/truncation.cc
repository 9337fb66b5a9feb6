#include "tasks/wikihop/truncation.h"

#include <c10/util/Exception.h>

#include <queue>

namespace etc {
namespace {

struct WaitingDocument {
  int64_t sentences = 0;
  // Position in the queue of documents with equally many.
  int64_t ticket = 0;
  size_t document = 0;
};

struct ServedLater {
  bool operator()(const WaitingDocument& a, const WaitingDocument& b) const {
    return a.sentences != b.sentences ? a.sentences < b.sentences
                                      : a.ticket > b.ticket;
  }
};

}  // namespace

std::vector<int64_t> KeptSentences(
    const std::vector<std::vector<int64_t>>& sentence_pieces,
    int64_t max_sentences, int64_t max_pieces) {
  TORCH_CHECK(max_sentences >= 0 && max_pieces >= 0,
              "limits should not be negative, but are ", max_sentences,
              " sentences and ", max_pieces, " pieces");
  std::vector<int64_t> kept;
  std::priority_queue<WaitingDocument, std::vector<WaitingDocument>,
                      ServedLater>
      queue;
  int64_t next_ticket = 0;
  int64_t excess_sentences = -max_sentences;
  int64_t excess_pieces = -max_pieces;
  for (const std::vector<int64_t>& document : sentence_pieces) {
    const int64_t sentences = static_cast<int64_t>(document.size());
    queue.push({sentences, next_ticket++, kept.size()});
    kept.push_back(sentences);
    excess_sentences += sentences;
    for (const int64_t pieces : document) {
      excess_pieces += pieces;
    }
  }
  while (excess_sentences > 0 || excess_pieces > 0) {
    WaitingDocument longest = queue.top();
    queue.pop();
    kept[longest.document] = --longest.sentences;
    --excess_sentences;
    excess_pieces -= sentence_pieces[longest.document]
                                    [static_cast<size_t>(longest.sentences)];
    longest.ticket = next_ticket++;
    queue.push(longest);
  }
  return kept;
}

}  // namespace etc
