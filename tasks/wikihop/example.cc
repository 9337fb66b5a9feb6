#include "tasks/wikihop/example.h"

#include <c10/util/Exception.h>

#include <queue>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/example_writer.h"

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

absl::Status Error(const std::string& where, const WikihopRecord& record,
                   absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": question ", record.id, ": ", message));
}

// Candidates and query: what is never truncated.
struct Question {
  std::vector<CandidatePieces> candidates;
  std::vector<Token> query;
  int64_t num_pieces = 0;
};

absl::StatusOr<Question> EncodeQuestion(const WikihopRecord& record,
                                        const Tokenizer& tokenizer,
                                        int64_t max_pieces,
                                        const std::string& where) {
  Question question;
  question.query = tokenizer.Encode(record.query);
  if (question.query.empty()) {
    return Error(where, record, "the query has no token");
  }
  question.num_pieces = static_cast<int64_t>(question.query.size());
  for (const std::string& candidate : record.candidates) {
    std::vector<Token> pieces = tokenizer.Encode(candidate);
    if (pieces.empty()) {
      return Error(where, record,
                   absl::StrCat("candidate ", question.candidates.size(),
                                ", \"", candidate, "\", has no token"));
    }
    question.num_pieces += static_cast<int64_t>(pieces.size());
    question.candidates.push_back({candidate, std::move(pieces)});
  }
  if (question.num_pieces > max_pieces) {
    return Error(
        where, record,
        absl::StrCat("candidates and query need ", question.num_pieces,
                     " long tokens, but max_long_length is ", max_pieces));
  }
  return question;
}

// Sentences to keep of each document so that the rest fits behind `question`.
std::vector<int64_t> SentencesThatFit(const std::vector<Document>& documents,
                                      const Question& question,
                                      const WikihopExampleOptions& options) {
  std::vector<std::vector<int64_t>> sentence_pieces;
  for (const Document& document : documents) {
    std::vector<int64_t>& pieces = sentence_pieces.emplace_back();
    for (const Sentence& sentence : document) {
      pieces.push_back(static_cast<int64_t>(sentence.pieces.size()));
    }
  }
  return KeptSentences(sentence_pieces, options.max_num_sentences,
                       options.max_long_length - question.num_pieces);
}

// The two sequences, from left to right (doc/wikihop.md 3.3).
class QuestionWriter {
 public:
  QuestionWriter(const std::vector<CandidatePieces>& candidates,
                 const Tokenizer& tokenizer,
                 const WikihopExampleOptions& options)
      : candidates_(candidates), tokenizer_(tokenizer), options_(options) {}

  void AddCandidates() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const int64_t first = example_->long_length();
      const int32_t global =
          tokens_.AddGlobal(kWikihopCandidateToken, kWikihopCandidateGlobalType,
                            options_.candidate_ignore_hard_g2l);
      AddLong(candidates_[i].pieces, kWikihopCandidateType,
              {.sentence = global});
      example_->mentions.push_back({.candidate = static_cast<int32_t>(i),
                                    .first = first,
                                    .last = example_->long_length() - 1});
      tokens_.EndSegment();
    }
  }

  void AddQuery(const std::vector<Token>& pieces) {
    for (const Token& piece : pieces) {
      const int32_t global =
          tokens_.AddGlobal(kWikihopQueryToken, kWikihopQueryGlobalType,
                            options_.query_ignore_hard_g2l);
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
      ++example_->dropped_sentences;
      example_->dropped_pieces +=
          static_cast<int64_t>(document[k].pieces.size());
    }
    ++example_->num_documents;
    example_->num_sentences += kept_sentences;
    tokens_.EndSegment();
  }

  // To be called once, last.
  std::shared_ptr<WikihopExample> Finish() {
    if (options_.enable_l2g_linking) {
      LinkMentions();
    }
    tokens_.SetPattern(options_.pattern);
    return std::move(example_);
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
    const int64_t offset = example_->long_length();
    for (Mention mention :
         FindMentions(sentence.text, sentence.pieces, candidates_,
                      options_.mention_alignment, tokenizer_)) {
      mention.first += offset;
      mention.last += offset;
      example_->mentions.push_back(mention);
    }
  }

  // A token in several mentions is linked to the last candidate
  // (doc/wikihop.md 3.4), whose number is that of its global token.
  void LinkMentions() {
    for (const Mention& mention : example_->mentions) {
      for (int64_t t = mention.first; t <= mention.last; ++t) {
        tokens_.Link(t, mention.candidate);
      }
    }
  }

  const std::vector<CandidatePieces>& candidates_;
  const Tokenizer& tokenizer_;
  const WikihopExampleOptions& options_;
  std::shared_ptr<WikihopExample> example_ = std::make_shared<WikihopExample>();
  MultihopWriter tokens_{&*example_};
};

}  // namespace

absl::StatusOr<std::shared_ptr<const WikihopExample>> MakeWikihopExample(
    const WikihopRecord& record, const Tokenizer& tokenizer,
    const WikihopExampleOptions& options, const std::string& where) {
  ETC_ASSIGN_OR_RETURN(
      const Question question,
      EncodeQuestion(record, tokenizer, options.max_long_length, where));
  const std::vector<Document> documents =
      SplitDocuments(record.supports, tokenizer, options.split_sentences);
  const std::vector<int64_t> kept =
      SentencesThatFit(documents, question, options);

  QuestionWriter writer(question.candidates, tokenizer, options);
  writer.AddCandidates();
  writer.AddQuery(question.query);
  for (size_t d = 0; d < documents.size(); ++d) {
    writer.AddDocument(documents[d], kept[d]);
  }
  const std::shared_ptr<WikihopExample> example = writer.Finish();
  if (example->global_length() > options.max_global_length) {
    return Error(
        where, record,
        absl::StrCat("needs ", example->global_length(), " global tokens (",
                     question.candidates.size(), " candidates, ",
                     question.query.size(), " query tokens, ", documents.size(),
                     " documents, ", example->num_sentences,
                     " sentences), but max_global_length is ",
                     options.max_global_length));
  }
  example->record_id = record.id;
  example->query = record.query;
  example->candidates = record.candidates;
  example->label = record.label;
  example->has_answer = record.label.has_value();
  return example;
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

}  // namespace etc
