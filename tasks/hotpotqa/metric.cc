#include "tasks/hotpotqa/metric.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_file.h"
#include "tasks/hotpotqa/facts_json.h"

namespace etc {
namespace {

double Share(double part, int64_t whole) {
  return whole == 0 ? 0.0 : part / static_cast<double>(whole);
}

// Whether a normalised answer is one of those that share no words with others.
bool IsWhole(absl::string_view normalized) {
  return normalized == "yes" || normalized == "no" || normalized == "noanswer";
}

char KindOfGold(absl::string_view normalized) {
  return normalized == "yes" ? 'Y' : normalized == "no" ? 'N' : 'A';
}

// See HotpotqaScore::Diagnostics.
char KindOfPrediction(absl::string_view predicted, absl::string_view gold) {
  if (predicted == "yes") {
    return 'Y';
  }
  if (predicted == "no") {
    return 'N';
  }
  if (predicted.empty()) {
    return 'E';
  }
  return KindOfGold(gold) != 'A' || predicted == gold ? 'A' : 'B';
}

// The two objects of a prediction file, by question.
struct PredictionFile {
  nlohmann::json json;
  std::string path;

  // Each absent if the file has nothing for the question.
  absl::StatusOr<std::optional<std::string>> AnswerOf(
      const std::string& id) const {
    const nlohmann::json* value = Find("answer", id);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": answer.", id, " should be a string, but is ",
                       value->type_name()));
    }
    return value->get<std::string>();
  }

  absl::StatusOr<std::optional<std::vector<HotpotqaFact>>> FactsOf(
      const std::string& id) const {
    const nlohmann::json* value = Find("sp", id);
    if (value == nullptr) {
      return std::nullopt;
    }
    ETC_ASSIGN_OR_RETURN(
        std::vector<HotpotqaFact> facts,
        HotpotqaFactsFromJson(*value, absl::StrCat(path, ": sp.", id)));
    return facts;
  }

 private:
  const nlohmann::json* Find(const char* part, const std::string& id) const {
    const nlohmann::json& object = *json.find(part);
    const auto found = object.find(id);
    return found == object.end() ? nullptr : &*found;
  }
};

absl::StatusOr<PredictionFile> ReadPredictions(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(nlohmann::json json, ReadJsonFile(path));
  const char* const expected =
      R"( should be {"answer": {"<id>": "text", ...}, "sp": {"<id>": [["title", 0], ...], ...}})";
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, expected));
  }
  for (const char* part : {"answer", "sp"}) {
    const auto found = json.find(part);
    if (found == json.end() || !found->is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, expected, ", but ",
          found == json.end() ? "has no " : "has another ", "\"", part, "\""));
    }
  }
  return PredictionFile{.json = std::move(json), .path = path};
}

}  // namespace

HotpotqaPartScore ScoreHotpotqaAnswer(absl::string_view predicted,
                                      absl::string_view gold) {
  const std::string normalized = NormalizeAnswer(predicted);
  const std::string right = NormalizeAnswer(gold);
  HotpotqaPartScore score{.exact = normalized == right ? 1.0 : 0.0};
  if (normalized == right || (!IsWhole(normalized) && !IsWhole(right))) {
    score.overlap = WordOverlap(normalized, right);
  }
  return score;
}

HotpotqaPartScore ScoreHotpotqaFacts(const std::vector<HotpotqaFact>& predicted,
                                     const std::vector<HotpotqaFact>& gold) {
  const std::set<HotpotqaFact> found(predicted.begin(), predicted.end());
  const std::set<HotpotqaFact> right(gold.begin(), gold.end());
  int64_t shared = 0;
  for (const HotpotqaFact& fact : found) {
    shared += right.contains(fact) ? 1 : 0;
  }
  return {.exact = found == right ? 1.0 : 0.0,
          .overlap = {.precision = Share(static_cast<double>(shared),
                                         static_cast<int64_t>(found.size())),
                      .recall = Share(static_cast<double>(shared),
                                      static_cast<int64_t>(right.size()))}};
}

HotpotqaPartScore JointHotpotqaScore(const HotpotqaPartScore& answer,
                                     const HotpotqaPartScore& facts) {
  return {.exact = answer.exact * facts.exact,
          .overlap = {
              .precision = answer.overlap.precision * facts.overlap.precision,
              .recall = answer.overlap.recall * facts.overlap.recall}};
}

void HotpotqaScore::Sums::Add(const HotpotqaPartScore& score) {
  exact += score.exact;
  f1 += score.overlap.f1();
  precision += score.overlap.precision;
  recall += score.overlap.recall;
}

void HotpotqaScore::Add(const std::optional<std::string>& answer,
                        const std::optional<std::vector<HotpotqaFact>>& facts,
                        const HotpotqaRecord& gold) {
  const std::string& gold_answer = *gold.answer;
  ++questions_;
  HotpotqaPartScore answer_score;
  HotpotqaPartScore facts_score;
  if (answer.has_value()) {
    ++answered_;
    answer_score = ScoreHotpotqaAnswer(*answer, gold_answer);
    answer_.Add(answer_score);
  }
  if (facts.has_value()) {
    facts_score = ScoreHotpotqaFacts(*facts, gold.supporting_facts);
    facts_.Add(facts_score);
  }
  if (answer.has_value() && facts.has_value()) {
    joint_.Add(JointHotpotqaScore(answer_score, facts_score));
  }
  const std::string normalized = NormalizeAnswer(gold_answer);
  const char gold_kind = KindOfGold(normalized);
  ++kinds_[std::string(1, gold_kind)];
  ++kinds_[absl::StrCat(
      std::string(1, gold_kind), "_",
      std::string(1, KindOfPrediction(NormalizeAnswer(answer.value_or("")),
                                      normalized)))];
}

std::vector<std::pair<std::string, double>> HotpotqaScore::Means() const {
  std::vector<std::pair<std::string, double>> means;
  for (const auto& [prefix, sums] :
       {std::pair("", answer_), std::pair("sp_", facts_),
        std::pair("joint_", joint_)}) {
    for (const auto& [name, sum] :
         {std::pair("em", sums.exact), std::pair("f1", sums.f1),
          std::pair("prec", sums.precision),
          std::pair("recall", sums.recall)}) {
      means.emplace_back(absl::StrCat(prefix, name), Share(sum, questions_));
    }
  }
  return means;
}

std::vector<std::pair<std::string, double>> HotpotqaScore::Diagnostics() const {
  std::vector<std::pair<std::string, double>> shares = {
      {"answered", Share(static_cast<double>(answered_), questions_)}};
  for (const auto& [kind, count] : kinds_) {
    if (kind.size() > 1) {
      shares.emplace_back(
          absl::StrCat("kinds/", kind),
          Share(static_cast<double>(count), kinds_.at(kind.substr(0, 1))));
    }
  }
  return shares;
}

absl::StatusOr<HotpotqaScore> ScoreHotpotqaFiles(
    const std::string& gold_path, const std::string& predictions_path) {
  ETC_ASSIGN_OR_RETURN(const RecordFile gold, RecordFile::Open(gold_path));
  ETC_ASSIGN_OR_RETURN(const PredictionFile predictions,
                       ReadPredictions(predictions_path));
  HotpotqaScore score;
  for (int64_t i = 0; i < gold.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const std::string text, gold.Read(i));
    ETC_ASSIGN_OR_RETURN(const HotpotqaRecord record,
                         ParseHotpotqaRecord(text, gold.Where(i)));
    if (!record.answer.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(gold.Where(i), ".answer is missing"));
    }
    ETC_ASSIGN_OR_RETURN(const auto answer, predictions.AnswerOf(record.id));
    ETC_ASSIGN_OR_RETURN(const auto facts, predictions.FactsOf(record.id));
    score.Add(answer, facts, record);
  }
  return score;
}

}  // namespace etc
