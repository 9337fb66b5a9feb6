#include <c10/util/Exception.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/task.h"

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

// A sentence of a document and its pieces, made from it alone.
struct Sentence {
  absl::string_view text;
  std::vector<Token> pieces;
};
using Document = std::vector<Sentence>;

std::vector<Document> SplitDocuments(const std::vector<std::string>& supports,
                                     const Tokenizer& tokenizer,
                                     const SentenceSplitter& split_sentences) {
  std::vector<Document> documents;
  for (const absl::string_view support : supports) {
    Document& document = documents.emplace_back();
    for (const auto& [begin, end] : split_sentences(support)) {
      const absl::string_view text = support.substr(
          static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      document.push_back({text, tokenizer.Encode(text)});
    }
  }
  return documents;
}

// Equality of pieces as the official code has it, which compares their texts:
// WordPiece calls every unknown word "[UNK]", SentencePiece gives unknown
// pieces one id but leaves them their text.
class SamePiece {
 public:
  SamePiece(absl::string_view sentence, absl::string_view candidate,
            int32_t unknown_id)
      : sentence_(sentence), candidate_(candidate), unknown_id_(unknown_id) {}

  bool operator()(const Token& in_sentence, const Token& in_candidate) const {
    return in_sentence.id == in_candidate.id &&
           (in_sentence.id != unknown_id_ ||
            Text(sentence_, in_sentence) == Text(candidate_, in_candidate));
  }

 private:
  static absl::string_view Text(absl::string_view text, const Token& piece) {
    return text.substr(static_cast<size_t>(piece.begin),
                       static_cast<size_t>(piece.end - piece.begin));
  }

  absl::string_view sentence_;
  absl::string_view candidate_;
  int32_t unknown_id_;
};

void FindByPieces(absl::string_view sentence, const std::vector<Token>& pieces,
                  const CandidatePieces& candidate, int32_t unknown_id,
                  std::vector<Mention>* mentions) {
  const SamePiece same(sentence, candidate.text, unknown_id);
  const auto& wanted = candidate.pieces;
  auto at = pieces.begin();
  while (!wanted.empty()) {
    at = std::search(at, pieces.end(), wanted.begin(), wanted.end(), same);
    if (at == pieces.end()) {
      return;
    }
    const int64_t first = at - pieces.begin();
    mentions->push_back(
        {.first = first,
         .last = first + static_cast<int64_t>(wanted.size()) - 1});
    ++at;
  }
}

// `first_byte` and `last_byte` are bytes of the sentence.
void AddPiecesBetween(int64_t first_byte, int64_t last_byte,
                      const std::vector<Token>& pieces,
                      std::vector<Mention>* mentions) {
  const auto first = std::partition_point(
      pieces.begin(), pieces.end(),
      [first_byte](const Token& piece) { return piece.end <= first_byte; });
  const auto behind = std::partition_point(
      first, pieces.end(),
      [last_byte](const Token& piece) { return piece.begin <= last_byte; });
  if (first != behind) {
    mentions->push_back(
        {.first = first - pieces.begin(), .last = behind - pieces.begin() - 1});
  }
}

void FindByCharacters(const AlignedLowerCase& sentence,
                      const std::vector<Token>& pieces,
                      const std::string& candidate,
                      std::vector<Mention>* mentions) {
  for (size_t at = sentence.text.find(candidate); at != std::string::npos;
       at = sentence.text.find(candidate, at + 1)) {
    AddPiecesBetween(sentence.origin[at],
                     sentence.origin[at + candidate.size() - 1], pieces,
                     mentions);
  }
}

// Candidates and query, which are never truncated.
struct Question {
  std::vector<CandidatePieces> candidates;
  std::vector<Token> query;
  int64_t num_pieces = 0;
};

// Checks the question: that of a struct has been read by nobody. `max_pieces`
// is the length of the long input; `where` starts each message.
absl::StatusOr<Question> EncodeQuestion(const WikihopRecord& record,
                                        const Tokenizer& tokenizer,
                                        int64_t max_pieces,
                                        const std::string& where) {
  const std::string place = absl::StrCat(where, ": question ", record.id, ": ");
  if (record.candidates.empty()) {
    return InvalidArgument(place, "has no candidates");
  }
  const auto num_candidates = static_cast<int32_t>(record.candidates.size());
  if (record.label.has_value() &&
      (*record.label < 0 || *record.label >= num_candidates)) {
    return InvalidArgument(place, "the label should be a candidate in [0, ",
                           num_candidates, "), but is ", *record.label);
  }
  Question question;
  question.query = tokenizer.Encode(record.query);
  if (question.query.empty()) {
    return InvalidArgument(place, "the query has no token");
  }
  question.num_pieces = static_cast<int64_t>(question.query.size());
  for (const std::string& candidate : record.candidates) {
    std::vector<Token> pieces = tokenizer.Encode(candidate);
    if (pieces.empty()) {
      return InvalidArgument(place, "candidate ", question.candidates.size(),
                             ", \"", candidate, "\", has no token");
    }
    question.num_pieces += static_cast<int64_t>(pieces.size());
    question.candidates.push_back({candidate, std::move(pieces)});
  }
  if (question.num_pieces > max_pieces) {
    return InvalidArgument(place, "candidates and query need ",
                           question.num_pieces,
                           " long tokens, but max_long_length is ", max_pieces);
  }
  return question;
}

// Sentences to keep of each document so that the rest fits behind `question`.
std::vector<int64_t> SentencesThatFit(const std::vector<Document>& documents,
                                      const Question& question,
                                      const WikihopOptions& options) {
  std::vector<std::vector<int64_t>> sentence_pieces;
  for (const Document& document : documents) {
    std::vector<int64_t>& pieces = sentence_pieces.emplace_back();
    for (const Sentence& sentence : document) {
      pieces.push_back(static_cast<int64_t>(sentence.pieces.size()));
    }
  }
  return KeptSentences(sentence_pieces, options.max_num_sentences,
                       options.input.max_long_length - question.num_pieces);
}

// The two sequences, from left to right (doc/wikihop.md 3.3).
class QuestionWriter : public ExampleBuilder<Wikihop> {
 public:
  QuestionWriter(const std::vector<CandidatePieces>& candidates,
                 const Wikihop& wikihop)
      : ExampleBuilder(wikihop), candidates_(candidates) {}

  void AddCandidates() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const int64_t first = example().long_length();
      const int32_t global =
          tokens_.AddGlobal(kWikihopCandidateToken, kWikihopCandidateGlobalType,
                            options().candidate_ignore_hard_g2l);
      AddLong(candidates_[i].pieces, kWikihopCandidateType,
              {.sentence = global});
      example().mentions.push_back({.candidate = static_cast<int32_t>(i),
                                    .first = first,
                                    .last = example().long_length() - 1});
      tokens_.EndSegment();
    }
  }

  void AddQuery(const std::vector<Token>& pieces) {
    for (const Token& piece : pieces) {
      const int32_t global =
          tokens_.AddGlobal(kWikihopQueryToken, kWikihopQueryGlobalType,
                            options().query_ignore_hard_g2l);
      AddLong({piece}, kWikihopQueryType, {.sentence = global});
    }
    tokens_.EndSegment();
  }

  void AddDocument(const Document& document, int64_t kept_sentences) {
    const int32_t paragraph =
        tokens_.AddGlobal(kWikihopDocumentToken, kWikihopDocumentGlobalType,
                          /*ignore_hard_g2l=*/false);
    for (int64_t k = 0; k < kept_sentences; ++k) {
      const Sentence& sentence = document[static_cast<size_t>(k)];
      const int32_t global =
          tokens_.AddGlobal(kWikihopSentenceToken, kWikihopSentenceGlobalType,
                            /*ignore_hard_g2l=*/false);
      AddMentions(sentence);
      AddLong(sentence.pieces, kWikihopDocumentType,
              {.sentence = global, .paragraph = paragraph});
    }
    for (size_t k = static_cast<size_t>(kept_sentences); k < document.size();
         ++k) {
      ++example().dropped_sentences;
      example().dropped_pieces +=
          static_cast<int64_t>(document[k].pieces.size());
    }
    ++example().num_documents;
    example().num_sentences += kept_sentences;
    tokens_.EndSegment();
  }

  // Must be called once, last.
  void Finish() {
    if (options().enable_l2g_linking) {
      LinkMentions();
    }
    tokens_.SetPattern(options().input.pattern);
  }

 private:
  void AddLong(const std::vector<Token>& pieces, int32_t type,
               const MultihopWriter::Owners& owners) {
    for (const Token& piece : pieces) {
      tokens_.AddLong(piece.id, type, owners);
    }
  }

  // Mentions in a sentence whose pieces are about to be added.
  void AddMentions(const Sentence& sentence) {
    const int64_t offset = example().long_length();
    for (Mention mention :
         FindMentions(sentence.text, sentence.pieces, candidates_,
                      options().mention_alignment, tokenizer())) {
      mention.first += offset;
      mention.last += offset;
      example().mentions.push_back(mention);
    }
  }

  // A token in several mentions is linked to the last candidate
  // (doc/wikihop.md 3.4), whose number is that of its global token.
  void LinkMentions() {
    for (const Mention& mention : example().mentions) {
      for (int64_t t = mention.first; t <= mention.last; ++t) {
        tokens_.Link(t, mention.candidate);
      }
    }
  }

  const std::vector<CandidatePieces>& candidates_;
  MultihopWriter tokens_{&example()};
};

}  // namespace

Wikihop::ExamplesOr Wikihop::MakeExamples(Record record,
                                          const std::string& where) const {
  const InputOptions& input = options().input;
  ETC_ASSIGN_OR_RETURN(
      const Question question,
      EncodeQuestion(record, tokenizer(), input.max_long_length, where));
  const std::vector<Document> documents =
      SplitDocuments(record.supports, tokenizer(), input.split_sentences);
  const std::vector<int64_t> kept =
      SentencesThatFit(documents, question, options());

  QuestionWriter writer(question.candidates, *this);
  writer.AddCandidates();
  writer.AddQuery(question.query);
  for (size_t d = 0; d < documents.size(); ++d) {
    writer.AddDocument(documents[d], kept[d]);
  }
  writer.Finish();
  const std::shared_ptr<WikihopExample> example = writer.Result();
  if (example->global_length() > input.max_global_length) {
    return InvalidArgument(
        where, ": question ", record.id, ": needs ", example->global_length(),
        " global tokens (", question.candidates.size(), " candidates, ",
        question.query.size(), " query tokens, ", documents.size(),
        " documents, ", example->num_sentences,
        " sentences), but max_global_length is ", input.max_global_length);
  }
  example->record_id = std::move(record.id);
  example->query = std::move(record.query);
  example->candidates = std::move(record.candidates);
  example->label = record.label;
  example->has_answer = record.label.has_value();
  return ExamplesOr({example});
}

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

std::vector<Mention> FindMentions(
    absl::string_view sentence, const std::vector<Token>& pieces,
    const std::vector<CandidatePieces>& candidates, MentionAlignment alignment,
    const Tokenizer& tokenizer) {
  const AlignedLowerCase lower = LowerCaseWithOrigin(sentence);
  const int32_t unknown_id = tokenizer.Id("<unk>");
  std::vector<Mention> mentions;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const CandidatePieces& candidate = candidates[i];
    if (candidate.text.empty() ||
        lower.text.find(candidate.text) == std::string::npos) {
      continue;
    }
    const size_t before = mentions.size();
    if (alignment == MentionAlignment::kPieces) {
      FindByPieces(sentence, pieces, candidate, unknown_id, &mentions);
    } else {
      FindByCharacters(lower, pieces, candidate.text, &mentions);
    }
    for (size_t k = before; k < mentions.size(); ++k) {
      mentions[k].candidate = static_cast<int32_t>(i);
    }
  }
  return mentions;
}

}  // namespace etc
