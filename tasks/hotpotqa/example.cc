#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/inputs/example_writer.h"

namespace etc {
namespace {

// Special tokens of SentencePiece checkpoints (doc/hotpotqa.md 2.3).
constexpr HotpotqaTokens kSentencePieceTokens = {
    .cls = 40, .sentence = 1, .question = 41, .paragraph = 43};

// The sentences of a title that support the answer.
using FactsByTitle = std::map<std::string, std::set<int64_t>>;

FactsByTitle FactsOf(const HotpotqaRecord& record) {
  FactsByTitle facts;
  for (const HotpotqaFact& fact : record.supporting_facts) {
    facts[fact.title].insert(fact.sentence);
  }
  return facts;
}

HotpotqaAnswerType AnswerTypeOf(const std::string& answer) {
  return answer == "yes"  ? HotpotqaAnswerType::kYes
         : answer == "no" ? HotpotqaAnswerType::kNo
                          : HotpotqaAnswerType::kSpan;
}

// Reasons to leave out a record for training.
constexpr char kNoSupport[] = "no supporting fact is in the input";

std::string NotInSupport(const std::string& answer) {
  const bool is_yes_or_no = absl::EqualsIgnoreCase(answer, "yes") ||
                            absl::EqualsIgnoreCase(answer, "no");
  return absl::StrCat("the answer is in no supporting sentence",
                      is_yes_or_no ? "; yes and no should be lower case" : "");
}

// Question and paragraphs, from left to right.
class ParagraphWriter : public ExampleBuilder<Hotpotqa> {
 public:
  ParagraphWriter(std::shared_ptr<const HotpotqaRecord> record,
                  const Hotpotqa& hotpotqa)
      : ExampleBuilder(hotpotqa),
        tokens_(HotpotqaTokensOf(options().input.tokenizer_kind, tokenizer())),
        answer_(record->answer.value_or(""), options().input.tokenizer_kind,
                &tokenizer()),
        facts_(FactsOf(*record)) {
    example().record = std::move(record);
  }

  void AddQuestion() {
    AddGlobal(tokens_.cls, {.ignore_hard_g2l = true});
    AddLong(tokens_.cls, kHotpotqaSentenceType, {}, {});
    input_.EndSegment();
    const std::string& question = example().record->question;
    bool any = false;
    for (const Token& piece : tokenizer().Encode(question)) {
      if (!Fits(1)) {
        ++example().dropped_question_pieces;
        continue;
      }
      const int32_t global = AddGlobal(tokens_.question, {});
      AddLong(piece.id, kHotpotqaQuestionType, {piece.begin, piece.end},
              {.sentence = global});
      any = true;
    }
    if (any) {
      input_.EndSegment();
    }
  }

  void AddParagraph(int32_t index) {
    const HotpotqaParagraph& paragraph =
        example().record->context[static_cast<size_t>(index)];
    const auto facts = facts_.find(paragraph.title);
    const bool supports = facts != facts_.end();
    const bool is_full =
        example().global_length() >= options().input.max_global_length;
    if (is_full && !options().official_compatibility) {
      drops_support_ |= supports;
      example().dropped_texts +=
          1 + static_cast<int64_t>(paragraph.sentences.size());
      return;
    }
    // If a paragraph's own token does not fit, none of its text will, but the
    // official program looks for answers in it (AddText).
    const int32_t global =
        is_full ? -1
                : AddGlobal(tokens_.paragraph,
                            {.paragraph = index, .supports = supports});
    AddText(paragraph.title, kHotpotqaTitleType, global,
            {.paragraph = index, .supports = supports});
    int32_t number = 0;
    for (size_t k = 0; k < paragraph.sentences.size(); ++k) {
      const bool added = AddText(
          paragraph.sentences[k], kHotpotqaSentenceType, global,
          {.paragraph = index,
           .sentence = number,
           .record_sentence = static_cast<int32_t>(k),
           .supports =
               supports && facts->second.contains(static_cast<int64_t>(k))});
      // The official program counts the sentences that fit.
      number += added || !options().official_compatibility ? 1 : 0;
    }
    input_.EndSegment();
  }

  // Must be called once, last.
  void Finish() {
    input_.SetPattern(options().input.pattern, options().flat_sequence);
    example().record_id = example().record->id;
    example().has_answer = example().record->answer.has_value();
    if (example().has_answer) {
      SetTargets();
    }
  }

 private:
  struct GlobalFields {
    int32_t paragraph = -1;
    int32_t sentence = -1;
    int32_t record_sentence = -1;
    bool supports = false;
    bool ignore_hard_g2l = false;
  };

  // Returns true if there is room for one more global token and its long ones.
  bool Fits(int64_t pieces) const {
    return example().long_length() + pieces <=
               options().input.max_long_length &&
           example().global_length() + 1 <= options().input.max_global_length;
  }

  // Returns the index of the new token.
  int32_t AddGlobal(int32_t token, const GlobalFields& fields) {
    example().global_paragraph_ids.push_back(fields.paragraph);
    example().global_sentence_ids.push_back(fields.sentence);
    example().global_record_sentences.push_back(fields.record_sentence);
    example().supporting_facts.push_back(fields.supports ? 1 : 0);
    return input_.AddGlobal(token, /*type=*/0, fields.ignore_hard_g2l);
  }

  void AddLong(int32_t token, int32_t type, ByteRange bytes,
               const MultihopWriter::Owners& owners) {
    example().long_bytes.push_back(bytes);
    input_.AddLong(token, type, owners);
  }

  // A title or sentence. Returns whether it was added.
  bool AddText(const std::string& text, int32_t type, int32_t paragraph,
               const GlobalFields& fields) {
    const std::vector<Token> pieces = tokenizer().Encode(text);
    const bool fits = Fits(static_cast<int64_t>(pieces.size()));
    // The official program looks for answers in text that does not fit, too.
    if (fields.supports && (fits || options().official_compatibility)) {
      const int64_t offset = example().long_length();
      for (const PieceSpan& span : answer_.Find(text, pieces)) {
        example().answer_spans.push_back(
            {.first = offset + span.first, .last = offset + span.last});
      }
    }
    if (!fits) {
      drops_support_ |= fields.supports;
      ++example().dropped_texts;
      return false;
    }
    const int32_t global = AddGlobal(tokens_.sentence, fields);
    for (const Token& piece : pieces) {
      AddLong(piece.id, type, {piece.begin, piece.end},
              {.sentence = global, .paragraph = paragraph});
    }
    return true;
  }

  void SetTargets() {
    std::vector<PieceSpan>& spans = example().answer_spans;
    std::stable_sort(spans.begin(), spans.end(),
                     [](const PieceSpan& left, const PieceSpan& right) {
                       return left.last < right.last;
                     });
    const std::string& answer = *example().record->answer;
    example().answer_type = AnswerTypeOf(answer);
    const bool is_span = example().answer_type == HotpotqaAnswerType::kSpan;
    // "no" is in "know": nothing to point at (trap of doc/hotpotqa.md 2.6).
    if (!is_span && !options().official_compatibility) {
      spans.clear();
    }
    const std::vector<uint8_t>& facts = example().supporting_facts;
    if (std::find(facts.begin(), facts.end(), 1) == facts.end()) {
      example().left_out = kNoSupport;
    } else if (is_span &&
               (spans.empty() ||
                spans.front().last >= options().input.max_long_length)) {
      example().left_out =
          drops_support_
              ? "the answer is in no supporting sentence in the input"
              : NotInSupport(answer);
    }
  }

  const HotpotqaTokens tokens_;
  const AnswerFinder answer_;
  const FactsByTitle facts_;
  // True if a title or sentence that supports the answer did not fit.
  bool drops_support_ = false;
  MultihopWriter input_{&example()};
};

}  // namespace

HotpotqaTokens HotpotqaTokensOf(TokenizerKind kind,
                                const Tokenizer& tokenizer) {
  if (kind == TokenizerKind::kSentencePiece) {
    return kSentencePieceTokens;
  }
  return {.cls = kind == TokenizerKind::kHuggingFace ? tokenizer.marks().first
                                                     : tokenizer.Id("[CLS]")};
}

int64_t HotpotqaExample::TaskBytes() const {
  // Fixed part besides texts: the fields of the record and of this struct.
  constexpr int64_t kFixed = 2048;
  int64_t bytes = kFixed + static_cast<int64_t>(record->question.size());
  for (const HotpotqaParagraph& paragraph : record->context) {
    bytes += static_cast<int64_t>(sizeof(HotpotqaParagraph) +
                                  paragraph.title.size());
    for (const std::string& sentence : paragraph.sentences) {
      bytes += static_cast<int64_t>(sizeof(std::string) + sentence.size());
    }
  }
  return bytes + static_cast<int64_t>(long_bytes.size() * sizeof(ByteRange));
}

std::vector<int64_t> HotpotqaExample::BioTargets() const {
  const auto size = static_cast<int64_t>(long_token_ids.size());
  std::vector<int64_t> classes(long_token_ids.size(),
                               static_cast<int64_t>(HotpotqaBio::kOutside));
  for (const PieceSpan& span : answer_spans) {
    if (span.last >= size) {
      break;
    }
    for (int64_t i = span.first; i <= span.last; ++i) {
      classes[static_cast<size_t>(i)] = static_cast<int64_t>(
          i == span.first ? HotpotqaBio::kBegin : HotpotqaBio::kInside);
    }
  }
  return classes;
}

const std::string& HotpotqaExample::TextOf(int32_t global) const {
  return TextOf(global, global_record_sentences[static_cast<size_t>(global)]);
}

const std::string& HotpotqaExample::OfficialTextOf(int32_t global) const {
  return TextOf(global, global_sentence_ids[static_cast<size_t>(global)]);
}

const std::string& HotpotqaExample::TextOf(int32_t global,
                                           int32_t sentence) const {
  static const auto* none = new std::string();
  const int32_t paragraph = global_paragraph_ids[static_cast<size_t>(global)];
  if (paragraph < 0) {
    return *none;
  }
  const HotpotqaParagraph& text =
      record->context[static_cast<size_t>(paragraph)];
  return sentence < 0 ? text.title
                      : text.sentences[static_cast<size_t>(sentence)];
}

std::string Hotpotqa::WhyLeftOut(const Record& record) const {
  if (!record.answer.has_value()) {
    return "";
  }
  const FactsByTitle facts = FactsOf(record);
  const AnswerFinder finder(*record.answer, options().input.tokenizer_kind,
                            &tokenizer());
  const auto has_answer = [&](const std::string& text) {
    return !finder.Find(text, tokenizer().Encode(text)).empty();
  };
  const bool is_span =
      AnswerTypeOf(*record.answer) == HotpotqaAnswerType::kSpan;
  bool is_supported = false;
  for (const HotpotqaParagraph& paragraph : record.context) {
    const auto of_title = facts.find(paragraph.title);
    if (of_title == facts.end()) {
      continue;
    }
    is_supported = true;
    if (!is_span || has_answer(paragraph.title)) {
      return "";
    }
    for (size_t k = 0; k < paragraph.sentences.size(); ++k) {
      if (of_title->second.contains(static_cast<int64_t>(k)) &&
          has_answer(paragraph.sentences[k])) {
        return "";
      }
    }
  }
  return is_supported ? NotInSupport(*record.answer) : kNoSupport;
}

Hotpotqa::ExamplesOr Hotpotqa::MakeExamples(
    Record record, const std::string& /*where*/) const {
  const auto shared = std::make_shared<const HotpotqaRecord>(std::move(record));
  ParagraphWriter writer(shared, *this);
  writer.AddQuestion();
  for (size_t p = 0; p < shared->context.size(); ++p) {
    writer.AddParagraph(static_cast<int32_t>(p));
  }
  writer.Finish();
  return ExamplesOr({writer.Result()});
}

}  // namespace etc
