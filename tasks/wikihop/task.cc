#include "tasks/wikihop/task.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/inputs/description.h"
#include "tasks/task/official_json.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// Adds the field "answer" of a line to an object of answers by id; null: the
// line has none.
void AddAnswer(const std::string& id, const nlohmann::json& line,
               nlohmann::json* object) {
  (*object)[id] = line.value("answer", nlohmann::json());
}

}  // namespace

absl::Status Wikihop::UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options) const {
  // doc/wikihop.md 3.4
  constexpr char kReason[] =
      "candidates are in lower case, so pieces with capitals would never match "
      "them";
  if (options->mention_alignment != MentionAlignment::kPieces ||
      tokenizer.lower_cases()) {
    return absl::OkStatus();
  }
  if (options->input.tokenizer_kind == TokenizerKind::kHuggingFace) {
    return InvalidArgument(
        "wikihop.mention_alignment should be \"characters\" with a "
        "tokenizer.json that does not lower-case: ",
        kReason);
  }
  // [UNK] is the mark of WordPiece.
  return tokenizer.Id("[UNK]") < 0
             ? absl::OkStatus()
             : InvalidArgument(
                   "tokenizer.lower_case should be true with WordPiece, or "
                   "wikihop.mention_alignment \"characters\": ",
                   kReason);
}

void Wikihop::ReadRecord(JsonObjectReader& reader, Record* record) const {
  std::string answer;
  reader.Required("id", &record->id);
  reader.Required("query", &record->query);
  reader.Required("candidates", &record->candidates);
  reader.Required("supports", &record->supports);
  reader.Optional("answer", &answer);
  if (record->candidates.empty()) {
    reader.Fail("candidates", "should name at least one answer, but is []");
  }
  for (std::string& candidate : record->candidates) {
    candidate = LowerCase(StripWhiteSpace(candidate));
  }
  if (reader.Has("answer")) {
    const auto found = std::find(record->candidates.begin(),
                                 record->candidates.end(), LowerCase(answer));
    if (found == record->candidates.end()) {
      reader.Fail("answer",
                  absl::StrCat("should be one of the candidates, but is \"",
                               answer, "\" (question ", record->id, ")"));
    }
    record->label = static_cast<int32_t>(found - record->candidates.begin());
  }
}

namespace {

absl::string_view KindOf(int32_t global_type) {
  switch (global_type) {
    case kWikihopCandidateGlobalType:
      return "candidate";
    case kWikihopQueryGlobalType:
      return "query";
    case kWikihopDocumentGlobalType:
      return "document";
    default:
      return "sentence";
  }
}

}  // namespace

std::string Wikihop::Describe(const Example& example) const {
  const auto kind = [&example](size_t g) {
    return std::string(KindOf(example.global_type_ids[g]));
  };
  const auto token = [&](size_t i) {
    const int32_t linked = example.pattern.linked[i];
    return absl::StrCat(tokenizer().Piece(example.long_token_ids[i]),
                        linked >= 0 ? absl::StrCat(">", linked) : "");
  };
  const auto truncation = [&example](int64_t sentences) {
    return absl::StrCat("truncated by ", Counted(sentences, "sentence"), " of ",
                        Counted(example.dropped_pieces, "token"));
  };
  return DescribeExample(
      example,
      {.title =
           absl::StrCat("question ", example.record_id, ": ", example.query),
       .answer = example.has_answer ? absl::StrCat("candidate ", *example.label,
                                                   ", ", GoldOf(example))
                                    : "",
       .size = absl::StrCat(
           DescribeLengths(example), "; ",
           Counted(example.num_candidates(), "candidate"), ", ",
           Counted(example.num_documents, "document"), ", ",
           Counted(example.num_sentences, "sentence"), "; ",
           DescribeTruncation(example.dropped_sentences, truncation)),
       .before_masks = absl::StrCat(
           Counted(static_cast<int64_t>(example.mentions.size()), "mention"),
           " of candidates; ")},
      {.kind_width = 9,
       .range_width = 13,
       .tokens_heading = "tokens (>link)",
       .gap = "  ",
       .kind = kind,
       .token = token});
}

namespace {

bool SameAnswer(absl::string_view a, absl::string_view b) {
  return LowerCase(StripWhiteSpace(a)) == LowerCase(StripWhiteSpace(b));
}

}  // namespace

std::string Wikihop::Decode(Outputs outputs) const {
  const Example& example = *outputs.front().example;
  const LogitRow candidates = outputs.front().logits.candidates;
  TORCH_CHECK(example.candidates.size() <= candidates.size(), "question ",
              example.record_id, " has more candidates than logits");
  const auto best = std::max_element(
      candidates.begin(), candidates.begin() + example.num_candidates());
  return example.candidates[static_cast<size_t>(best - candidates.begin())];
}

std::string Wikihop::GoldOf(const Example& example) const {
  return example.candidates[static_cast<size_t>(*example.label)];
}

std::optional<std::string> Wikihop::GoldOf(const Record& record) const {
  if (!record.label.has_value()) {
    return std::nullopt;
  }
  return record.candidates[static_cast<size_t>(*record.label)];
}

Wikihop::PredictionsOr Wikihop::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json answers,
                       ReadPredictionJson(path, AddAnswer));
  if (!answers.is_object()) {
    return InvalidArgument(
        path, R"( should be an object, {"<question id>": "<answer>", ...})");
  }
  ById<std::string> predictions;
  JsonObjectReader reader(answers, path);
  for (const auto& [id, answer] : answers.items()) {
    reader.Optional(id, &predictions.emplace_back(id, "").second);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  return predictions;
}

std::string Wikihop::PredictionJson(const std::string& id,
                                    const Prediction& prediction) const {
  return JsonAsciiText(
      nlohmann::ordered_json{{"id", id}, {"answer", prediction}});
}

std::string Wikihop::FileContents(const Answers& answers) const {
  ById<nlohmann::ordered_json> fields;
  for (const auto& [id, answer] : answers.predictions) {
    fields.emplace_back(id, answer);
  }
  return AsciiLine(JsonObjectOf(std::move(fields)));
}

Scores Wikihop::Score(const Answers& answers) const {
  double answered = 0;
  double correct = 0;
  const std::vector<const Prediction*> predictions =
      PredictionsFor(answers.gold, answers.predictions);
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i] != nullptr) {
      ++answered;
      correct += SameAnswer(*predictions[i], answers.gold[i].second) ? 1 : 0;
    }
  }
  const auto questions = static_cast<int64_t>(predictions.size());
  return {.metrics = {{"accuracy", Share(correct, questions)}},
          .diagnostics = {{"answered", Share(answered, questions)}}};
}

}  // namespace etc
