#include "tasks/pretrain/examples/sentence_pairs.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

#include "base/status_macros.h"

namespace etc {
namespace {

// Draws of a document other than the own one; after them the own one is taken.
constexpr int kMaxPartnerDraws = 10;

// Pieces of which tokens were removed from both ends.
struct Trimmed {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};

template <typename T>
void KeepRange(const Trimmed& range, std::vector<T>* values) {
  values->erase(values->begin() + static_cast<std::ptrdiff_t>(range.end),
                values->end());
  values->erase(values->begin(),
                values->begin() + static_cast<std::ptrdiff_t>(range.begin));
}

void KeepPieces(const Trimmed& range, Pieces* pieces) {
  KeepRange(range, &pieces->ids);
  KeepRange(range, &pieces->continues_word);
}

// The examples of one document, one after the other.
class PairWriter {
 public:
  PairWriter(const DocumentSet& documents, int64_t document,
             const SentencePairOptions& options, Draws& draws)
      : documents_(documents),
        document_(document),
        options_(options),
        draws_(draws),
        room_(options.room()) {}

  absl::StatusOr<std::vector<SentencePair>> Write() {
    target_ = room_;
    if (draws_.Uniform() < options_.short_sequence_rate) {
      target_ = draws_.Integer(2, room_);
    }
    const int64_t num_sentences = documents_.num_sentences(document_);
    std::vector<SentencePair> pairs;
    for (int64_t begin = 0; begin < num_sentences;) {
      ETC_ASSIGN_OR_RETURN(begin,
                           options_.next_sentence
                               ? WritePair(begin, num_sentences, &pairs)
                               : WriteText(begin, num_sentences, &pairs));
    }
    return pairs;
  }

 private:
  // Puts the tokens of a sentence behind `pieces`. The first begins a word,
  // even where its spelling does not say so: byte-level vocabularies mark the
  // blank before a word.
  absl::Status AppendSentence(int64_t document, int64_t sentence,
                              Pieces* pieces) const {
    const size_t first = pieces->ids.size();
    ETC_RETURN_IF_ERROR(documents_.AppendSentence(document, sentence, pieces));
    if (first < pieces->continues_word.size()) {
      pieces->continues_word[first] = 0;
    }
    return absl::OkStatus();
  }

  // Makes a single text from sentence `begin` on. Returns where the next one
  // begins.
  absl::StatusOr<int64_t> WriteText(int64_t begin, int64_t num_sentences,
                                    std::vector<SentencePair>* pairs) {
    Pieces text;
    int64_t end = begin;
    for (; end < num_sentences; ++end) {
      const size_t size = text.ids.size();
      ETC_RETURN_IF_ERROR(AppendSentence(document_, end, &text));
      if (end > begin && text.size() > target_) {
        KeepPieces({.begin = 0, .end = size}, &text);
        break;
      }
    }
    Pieces none;
    TruncatePair(room_, draws_, &text, &none);
    pairs->push_back(Join(text, none, /*random_next=*/false));
    return end;
  }

  // Makes a pair from sentence `begin` on. Returns where the next one begins.
  absl::StatusOr<int64_t> WritePair(int64_t begin, int64_t num_sentences,
                                    std::vector<SentencePair>* pairs) {
    Pieces chunk;
    std::vector<size_t> ends;  // of its sentences
    int64_t end = begin;
    while (end < num_sentences && (end == begin || chunk.size() < target_)) {
      ETC_RETURN_IF_ERROR(AppendSentence(document_, end++, &chunk));
      ends.push_back(chunk.ids.size());
    }
    const int64_t num_chunk = end - begin;
    const int64_t a_end = num_chunk >= 2 ? draws_.Integer(1, num_chunk - 1) : 1;
    const size_t cut = ends[static_cast<size_t>(a_end - 1)];
    Pieces a = chunk;
    KeepPieces({.begin = 0, .end = cut}, &a);
    const bool random_next = num_chunk == 1 || draws_.Uniform() < 0.5;
    Pieces b;
    if (random_next) {
      ETC_ASSIGN_OR_RETURN(b, DrawPartner(target_ - a.size()));
      end = begin + a_end;
    } else {
      b = std::move(chunk);
      KeepPieces({.begin = cut, .end = b.ids.size()}, &b);
    }
    TruncatePair(room_, draws_, &a, &b);
    pairs->push_back(Join(a, b, random_next));
    return end;
  }

  // Sentences of a random document from a random one on, until they have `want`
  // tokens or the document ends.
  absl::StatusOr<Pieces> DrawPartner(int64_t want) {
    int64_t partner = document_;
    for (int draw = 0; draw < kMaxPartnerDraws && partner == document_;
         ++draw) {
      partner = draws_.Integer(0, documents_.size() - 1);
    }
    const int64_t num_sentences = documents_.num_sentences(partner);
    int64_t sentence = draws_.Integer(0, num_sentences - 1);
    Pieces pieces;
    do {
      ETC_RETURN_IF_ERROR(AppendSentence(partner, sentence++, &pieces));
    } while (sentence < num_sentences && pieces.size() < want);
    return pieces;
  }

  SentencePair Join(const Pieces& a, const Pieces& b, bool random_next) {
    SentencePair pair{.random_next = random_next};
    std::vector<uint8_t> continues_word;
    const auto add = [&](int32_t token, int32_t type, uint8_t continues) {
      pair.tokens.push_back(token);
      pair.types.push_back(type);
      continues_word.push_back(continues);
    };
    add(options_.cls_id, 0, 0);
    for (size_t i = 0; i < a.ids.size(); ++i) {
      add(a.ids[i], 0, a.continues_word[i]);
    }
    add(options_.separator_id, 0, 0);
    if (options_.next_sentence) {
      for (size_t i = 0; i < b.ids.size(); ++i) {
        add(b.ids[i], 1, b.continues_word[i]);
      }
      add(options_.separator_id, 1, 0);
    }
    MaskPair(continues_word, options_.mlm, draws_, &pair);
    return pair;
  }

  const DocumentSet& documents_;
  const int64_t document_;
  const SentencePairOptions& options_;
  Draws& draws_;
  const int64_t room_;
  int64_t target_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<SentencePair>> CreateInstances(
    const DocumentSet& documents, int64_t document,
    const SentencePairOptions& options, Draws& draws) {
  TORCH_CHECK(options.max_length >= kShortestPair,
              "max_length should be at least ", kShortestPair, ", but is ",
              options.max_length);
  return PairWriter(documents, document, options, draws).Write();
}

void TruncatePair(int64_t max_tokens, Draws& draws, Pieces* a, Pieces* b) {
  Trimmed of_a{.begin = 0, .end = a->ids.size()};
  Trimmed of_b{.begin = 0, .end = b->ids.size()};
  while (static_cast<int64_t>(of_a.size() + of_b.size()) > max_tokens) {
    Trimmed& longer = of_a.size() > of_b.size() ? of_a : of_b;
    if (draws.Uniform() < 0.5) {
      ++longer.begin;
    } else {
      --longer.end;
    }
  }
  KeepPieces(of_a, a);
  KeepPieces(of_b, b);
}

void MaskPair(const std::vector<uint8_t>& continues_word,
              const MaskedLmOptions& options, Draws& draws,
              SentencePair* pair) {
  const size_t num_tokens = pair->tokens.size();
  MaskCandidates candidates;
  for (size_t i = 1; i + 1 < num_tokens; ++i) {
    const bool is_inner_separator =
        pair->types[i] == 0 && pair->types[i + 1] == 1;
    if (is_inner_separator) {
      continue;
    }
    if (options.whole_words && continues_word[i] != 0) {
      candidates.Join(static_cast<int32_t>(i));
    } else {
      candidates.Add(static_cast<int32_t>(i));
    }
  }
  const int64_t want =
      NumPredictions(static_cast<int64_t>(num_tokens), options);
  pair->masked = MaskTokens(candidates, want, options, draws, pair->tokens);
}

}  // namespace etc
