#include "tasks/classify/task.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tasks/inputs/description.h"

namespace etc {
namespace {

std::string TextOf(const ClassifyAnswer& answer) {
  return answer.type == ClassifyType::kNumber
             ? absl::StrCat(answer.number)
             : absl::StrJoin(answer.labels, ", ");
}

const char* FieldOf(ClassifyType type) {
  switch (type) {
    case ClassifyType::kOne:
      return "label";
    case ClassifyType::kSeveral:
      return "labels";
    case ClassifyType::kNumber:
      return "value";
  }
  return "";
}

}  // namespace

BenchmarkInfo Classify::info() const {
  return {.name = "classify",
          .description =
              "your own documents, CSV, TSV or JSON: say labels or a number of "
              "each",
          .prediction_unit = "line",
          .splits_sentences = true,
          .serves_bert = true,
          .has_own_files = true,
          .holds_out_records = true};
}

std::string Classify::Stratum(const Record& record) const {
  // Sets of several labels hardly ever come twice: the first stands for them.
  return record.answer.has_value() && !record.answer->labels.empty()
             ? record.answer->labels.front()
             : "";
}

std::string Classify::main_metric() const {
  switch (options().type) {
    case ClassifyType::kOne:
      break;
    case ClassifyType::kSeveral:
      return "micro_f1";
    case ClassifyType::kNumber:
      return "pearson";
  }
  return "accuracy";
}

std::pair<std::string, double> Classify::RecordScore(
    const Answers& answers) const {
  const bool is_number = options().type == ClassifyType::kNumber;
  const std::string name = is_number ? "mae" : main_metric();
  if (!is_number && answers.gold.front().second.labels.empty() &&
      answers.predictions.front().second.answer.labels.empty()) {
    return {name, 1.0};
  }
  return {name, FindMetric(Score(answers).metrics, name).value_or(0)};
}

std::string Classify::Describe(const Example& example) const {
  const auto piece = [this](const std::vector<int32_t>& ids, size_t i) {
    return tokenizer().Piece(ids[i]);
  };
  GlobalTokenTable table = {
      .token = [&](size_t i) { return piece(example.long_token_ids, i); }};
  if (!options().input.has_long_tokens) {
    constexpr int kPieceWidth = 15;
    table.kind_width = kPieceWidth;
    table.kind = [&](size_t g) { return piece(example.global_token_ids, g); };
  }
  return DescribeExample(
      example,
      {.title = absl::StrCat("record ", example.record_id),
       .answer_name = FieldOf(options().type),
       .answer = TextOf(example.answer),
       .size = DescribeTextSize(example, example.dropped_pieces,
                                example.dropped_sentences)},
      table);
}

absl::Status Classify::CheckFiles(const Answers& answers,
                                  const ScoredFiles& files) const {
  if (answers.gold.empty()) {
    return absl::OkStatus();
  }
  const ClassifyType type = answers.gold.front().second.type;
  for (const auto& [id, prediction] : answers.predictions) {
    if (prediction.answer.type != type) {
      return InvalidArgument(
          files.predictions, " should have \"", FieldOf(type),
          "\" for each document, but has \"", FieldOf(prediction.answer.type),
          "\" for ", id,
          "; where the configuration has another classify.type, give it with "
          "--config");
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
