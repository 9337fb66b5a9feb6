#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/nq/task.h"

namespace etc {
namespace {

// An answer in tokens of the document, both ends included; -1 for none.
struct TokenRange {
  int64_t first = -1;
  int64_t last = -1;
};

// Labels by the first annotation (doc/nq.md 2.2, step 3).
struct Labels {
  TokenRange long_answer;
  TokenRange short_answer;
  NqAnswerType type = NqAnswerType::kNull;
};

Labels LabelsOf(const NqAnnotation& annotation, const NqOptions& options) {
  Labels labels;
  const NqSpan& long_answer = annotation.long_answer;
  if (long_answer.start_token >= 0) {
    labels.long_answer = {.first = long_answer.start_token,
                          .last = long_answer.end_token - 1};
    labels.type = NqAnswerType::kLong;
  }
  for (const NqSpan& span : annotation.short_answers) {
    TokenRange& hull = labels.short_answer;
    if (span.start_token < 0) {
      continue;
    }
    hull.first = hull.first < 0 ? span.start_token
                                : std::min(hull.first, span.start_token);
    hull.last = std::max(hull.last, span.end_token - 1);
    labels.type = NqAnswerType::kShort;
  }
  if (labels.short_answer.first < 0 && options.predict_long_as_short) {
    labels.short_answer = labels.long_answer;
  }
  if (annotation.yes_no != NqYesNo::kNone) {
    labels.type = annotation.yes_no == NqYesNo::kYes ? NqAnswerType::kYes
                                                     : NqAnswerType::kNo;
  }
  return labels;
}

// Returns true if a window has both ends of an answer.
bool IsWhole(const NqTarget& target) {
  return target.start > 0 && target.start <= target.end;
}

// Returns begin and end of an answer among the pieces of a window. A missing
// end is 0, and by default the other end then, too.
NqTarget TargetOf(const TokenRange& answer, const NqExample& example,
                  bool official_compatibility) {
  const std::vector<int32_t>& tokens = example.long_tokens;
  const auto find = [&tokens](int64_t token) {
    return token < 0 ? tokens.end()
                     : std::find(tokens.begin(), tokens.end(), token);
  };
  NqTarget target;
  if (const auto first = find(answer.first); first != tokens.end()) {
    target.start = static_cast<int32_t>(first - tokens.begin());
  }
  if (auto last = find(answer.last); last != tokens.end()) {
    while (last + 1 != tokens.end() && last[1] == answer.last) {
      ++last;
    }
    target.end = static_cast<int32_t>(last - tokens.begin());
  }
  return IsWhole(target) || official_compatibility ? target : NqTarget();
}

// The type of a window, given its targets (doc/nq.md 2.4).
NqAnswerType TypeOf(NqAnswerType of_document, const NqExample& example,
                    bool official_compatibility) {
  const bool has_long = !example.long_answer.is_null();
  const bool has_short = !example.short_answer.is_null();
  switch (of_document) {
    case NqAnswerType::kYes:
    case NqAnswerType::kNo:
      return has_long || official_compatibility ? of_document
                                                : NqAnswerType::kNull;
    case NqAnswerType::kShort:
      if (has_short) {
        return of_document;
      }
      return has_long && !official_compatibility ? NqAnswerType::kLong
                                                 : NqAnswerType::kNull;
    case NqAnswerType::kLong:
      return has_long ? of_document : NqAnswerType::kNull;
    case NqAnswerType::kNull:
      break;
  }
  return NqAnswerType::kNull;
}

// A number in [0, 1) that follows from its arguments.
double UniformOf(uint64_t seed, int64_t example_id, int64_t window) {
  return UnitInterval(CombineSeeds({seed, static_cast<uint64_t>(example_id),
                                    static_cast<uint64_t>(window)}));
}

std::string LeftOut(NqAnswerType of_document, const NqExample& example,
                    const NqOptions& options) {
  const double rate = of_document == NqAnswerType::kNull
                          ? options.include_unknown_rate_for_unanswerable
                          : options.include_unknown_rate;
  const bool is_kept =
      example.answer_type != NqAnswerType::kNull ||
      UniformOf(static_cast<uint64_t>(options.unknown_seed),
                example.document->example_id, example.window) < rate;
  return is_kept ? "" : "a window without answer, by include_unknown_rate";
}

// Example::lost_answer of a document, by its first annotation, given all of its
// windows.
std::string LostAnswer(const std::vector<std::shared_ptr<NqExample>>& windows,
                       const NqOptions& options) {
  const NqDocument& document = *windows.front()->document;
  if (document.annotations.empty()) {
    return "";
  }
  const Labels labels = LabelsOf(document.annotations.front(), options);
  const bool is_long = labels.long_answer.first >= 0;
  if (!is_long && labels.short_answer.first < 0) {
    return "";
  }
  const NqSpan& span = document.annotations.front().long_answer;
  if (is_long &&
      std::none_of(document.candidates.begin(), document.candidates.end(),
                   [&span](const NqCandidate& candidate) {
                     return candidate.span.start_token == span.start_token &&
                            candidate.span.end_token == span.end_token;
                   })) {
    return "the long answer is no candidate of the page";
  }
  const bool is_whole = std::any_of(
      windows.begin(), windows.end(), [is_long](const auto& window) {
        const NqTarget& target =
            is_long ? window->long_answer : window->short_answer;
        return IsWhole(target);
      });
  return is_whole ? "" : "it is whole in no window";
}

// Makes the windows of one document.
class WindowMaker {
 public:
  WindowMaker(std::shared_ptr<const NqDocument> document,
              std::vector<Token> question, const NqPieces& pieces,
              const NqOptions& options)
      : document_(std::move(document)),
        question_(std::move(question)),
        pieces_(pieces),
        options_(options) {}

  std::shared_ptr<NqExample> Window(int64_t window, int64_t start) const {
    auto example = std::make_shared<NqExample>();
    example->document = document_;
    example->record_id = absl::StrCat(document_->example_id);
    example->window = window;
    example->question_length = static_cast<int64_t>(question_.size());
    example->has_answer = !document_->annotations.empty();
    const std::vector<int32_t> candidates = AddLongTokens(start, &*example);
    const std::vector<int32_t> sentences =
        options_.fixed_blocks ? AddBlocks(&*example)
                              : AddGlobalTokens(candidates, &*example);
    SetTypesAndPattern(sentences, options_.input.pattern, &*example);
    if (example->has_answer) {
      SetTargets(&*example);
    }
    return example;
  }

 private:
  // Returns the candidate of each long token, or -1: [L].
  std::vector<int32_t> AddLongTokens(int64_t start, NqExample* example) const {
    const int64_t room = options_.input.max_long_length -
                         example->question_length - kNqNumSpecialTokens;
    const int64_t end = std::min(start + room, pieces_.size());
    std::vector<int32_t>& ids = example->long_token_ids;
    ids.push_back(options_.tokens.cls);
    for (const Token& piece : question_) {
      ids.push_back(piece.id);
    }
    ids.push_back(options_.tokens.separator);
    const size_t preamble = ids.size();
    ids.insert(ids.end(), pieces_.ids.begin() + start,
               pieces_.ids.begin() + end);
    ids.push_back(options_.tokens.separator);

    example->long_tokens.assign(ids.size(), -1);
    std::copy(pieces_.tokens.begin() + start, pieces_.tokens.begin() + end,
              example->long_tokens.begin() + static_cast<int64_t>(preamble));
    std::vector<int32_t> candidates(ids.size(), -1);
    std::copy(pieces_.candidates.begin() + start,
              pieces_.candidates.begin() + end,
              candidates.begin() + static_cast<int64_t>(preamble));
    return candidates;
  }

  // Both return the global token of each long token: [L] (doc/nq.md 2.5, 2.6).
  std::vector<int32_t> AddGlobalTokens(const std::vector<int32_t>& candidates,
                                       NqExample* example) const {
    const auto preamble = static_cast<size_t>(example->question_length) + 2;
    std::vector<int32_t>& globals = example->global_token_ids;
    globals.assign(preamble, kNqGlobalQuestionToken);
    globals.front() = options_.tokens.cls;
    example->global_candidates.assign(preamble, -1);
    std::vector<int32_t> sentences;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (i < preamble) {
        sentences.push_back(static_cast<int32_t>(i));
        continue;
      }
      if (candidates[i] != candidates[i - 1] &&
          static_cast<int64_t>(globals.size()) <
              options_.input.max_global_length) {
        globals.push_back(candidates[i] >= 0 ? kNqGlobalCandidateToken
                                             : kNqGlobalEndToken);
        example->global_candidates.push_back(candidates[i]);
      }
      sentences.push_back(static_cast<int32_t>(globals.size()) - 1);
    }
    return sentences;
  }

  std::vector<int32_t> AddBlocks(NqExample* example) const {
    const int64_t length = options_.fixed_block_size;
    const int64_t globals =
        std::min(options_.input.max_global_length,
                 (example->long_length() + length - 1) / length);
    example->global_token_ids.assign(static_cast<size_t>(globals),
                                     kNqGlobalCandidateToken);
    example->global_candidates.assign(static_cast<size_t>(globals), -1);
    std::vector<int32_t> sentences;
    for (int64_t i = 0; i < example->long_length(); ++i) {
      sentences.push_back(
          i / length < globals ? static_cast<int32_t>(i / length) : -1);
    }
    return sentences;
  }

  void SetTargets(NqExample* example) const {
    const bool official = options_.official_compatibility;
    const Labels labels = LabelsOf(document_->annotations.front(), options_);
    example->long_answer = TargetOf(labels.long_answer, *example, official);
    example->short_answer = TargetOf(labels.short_answer, *example, official);
    example->answer_type = TypeOf(labels.type, *example, official);
    example->left_out = LeftOut(labels.type, *example, options_);
  }

  const std::shared_ptr<const NqDocument> document_;
  const std::vector<Token> question_;
  const NqPieces& pieces_;
  const NqOptions& options_;
};

// Checks that candidates have tokens, all of the document: those of a struct,
// which no reader has checked, need not.
absl::Status CheckCandidates(const NqRecord& record, const std::string& where) {
  const auto num_tokens = static_cast<int64_t>(record.tokens.size());
  for (size_t i = 0; i < record.candidates.size(); ++i) {
    const NqSpan& span = record.candidates[i].span;
    if (span.start_token < 0 || span.end_token <= span.start_token ||
        span.end_token > num_tokens) {
      return InvalidArgument(where, ".candidates[", i,
                             "] should be one token or more within [0, ",
                             num_tokens, "), but is [", span.start_token, ", ",
                             span.end_token, ")");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t NqExample::TaskBytes() const {
  constexpr int64_t kFixed = 1024;
  auto shared =
      static_cast<int64_t>(document->question.size() +
                           document->candidates.size() * sizeof(NqCandidate));
  for (const NqAnnotation& annotation : document->annotations) {
    shared += static_cast<int64_t>(
        sizeof(annotation) + annotation.short_answers.size() * sizeof(NqSpan));
  }
  return kFixed + shared / document->num_windows +
         static_cast<int64_t>((long_tokens.size() + global_candidates.size()) *
                              sizeof(int32_t));
}

Nq::ExamplesOr Nq::MakeExamples(Record record, const std::string& where) const {
  ETC_RETURN_IF_ERROR(CheckCandidates(record, where));
  const NqOptions& options = this->options();
  const int64_t max_long_length = options.input.max_long_length;
  const int64_t max_global_length = options.input.max_global_length;
  TORCH_CHECK(options.stride > 0 &&
                  max_long_length >= options.max_question_length +
                                         kNqNumSpecialTokens + options.stride &&
                  max_global_length >= options.max_question_length + 2,
              "lengths ", max_long_length, " and ", max_global_length,
              " are too small for questions of ", options.max_question_length,
              " pieces and a stride of ", options.stride);
  std::vector<Token> question = tokenizer().Encode(record.question);
  const size_t all_pieces = question.size();
  question.resize(std::min(question.size(),
                           static_cast<size_t>(options.max_question_length)));
  const NqPieces pieces = NqPiecesOf(record, tokenizer(), options.tokens);
  const std::vector<int64_t> starts =
      NqWindowStarts(pieces.size(),
                     max_long_length - static_cast<int64_t>(question.size()) -
                         kNqNumSpecialTokens,
                     options.stride);
  const auto document = std::make_shared<const NqDocument>(
      NqDocument{.example_id = record.example_id,
                 .question = std::move(record.question),
                 .dropped_question_pieces =
                     static_cast<int64_t>(all_pieces - question.size()),
                 .candidates = std::move(record.candidates),
                 .annotations = std::move(record.annotations),
                 .num_pieces = pieces.size(),
                 .num_windows = static_cast<int64_t>(starts.size())});
  const WindowMaker windows(document, std::move(question), pieces, options);
  std::vector<std::shared_ptr<NqExample>> examples;
  examples.reserve(starts.size());
  for (const int64_t start : starts) {
    examples.push_back(
        windows.Window(static_cast<int64_t>(examples.size()), start));
  }
  examples.front()->lost_answer = LostAnswer(examples, options);
  return examples;
}

}  // namespace etc
