#include "tasks/openkp/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/data/record_file.h"
#include "tasks/openkp/prediction.h"
#include "tasks/openkp/raw.h"
#include "tasks/text/answer_normalization.h"

namespace etc {
namespace {

using NamedScores = std::vector<std::pair<std::string, double>>;

// A mean over documents, of which some may count as 0.
class Mean {
 public:
  void Add(const DepthScores& scores) {
    ++count_;
    for (size_t i = 0; i < scores.size(); ++i) {
      sum_[i].precision += scores[i].precision;
      sum_[i].recall += scores[i].recall;
      sum_[i].f1 += scores[i].f1;
    }
  }

  void AppendTo(const std::string& prefix, NamedScores* scores) const {
    for (size_t i = 0; i < sum_.size(); ++i) {
      const std::string depth = absl::StrCat("@", kOpenkpDepths[i]);
      const auto count = static_cast<double>(count_);
      scores->emplace_back(absl::StrCat(prefix, "p", depth),
                           sum_[i].precision / count);
      scores->emplace_back(absl::StrCat(prefix, "r", depth),
                           sum_[i].recall / count);
      scores->emplace_back(absl::StrCat(prefix, "f1", depth),
                           sum_[i].f1 / count);
    }
  }

 private:
  int64_t count_ = 0;
  DepthScores sum_ = {};
};

absl::Status ReadGold(const std::string& path, EmptyPhrases empty,
                      OpenkpScorer* scorer) {
  ETC_ASSIGN_OR_RETURN(const RecordFile file, RecordFile::Open(path));
  for (int64_t i = 0; i < file.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ParseJson(text, file.Where(i)));
    if (json.is_object() && !json.contains("VDOM")) {
      ETC_ASSIGN_OR_RETURN(const OpenkpPhraseLists lists,
                           ParseOpenkpPhraseLists(text, file.Where(i)));
      scorer->AddGold(lists.url, {.evaluator = EvaluatorPhrases(lists.phrases),
                                  .has_text = false});
      continue;
    }
    ETC_ASSIGN_OR_RETURN(const OpenkpRecord record,
                         ParseOpenkpRecord(text, file.Where(i)));
    if (!record.key_phrases.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.Where(i), ".KeyPhrases is missing"));
    }
    scorer->AddGold(record.url, ReferencesOf(record, empty));
  }
  return absl::OkStatus();
}

absl::Status ReadPredictions(const std::string& path, OpenkpScorer* scorer) {
  ETC_ASSIGN_OR_RETURN(const RecordFile file, RecordFile::Open(path));
  for (int64_t i = 0; i < file.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
    ETC_ASSIGN_OR_RETURN(const OpenkpPhraseLists lists,
                         ParseOpenkpPhraseLists(text, file.Where(i)));
    scorer->AddPrediction(lists.url, EvaluatorPhrases(lists.phrases));
  }
  return absl::OkStatus();
}

}  // namespace

DepthScores ScoreKeyPhrases(const std::vector<std::string>& predicted,
                            const std::vector<std::string>& references) {
  DepthScores scores = {};
  for (size_t i = 0; i < scores.size() && !references.empty(); ++i) {
    const int64_t depth =
        std::min(kOpenkpDepths[i], static_cast<int64_t>(predicted.size()));
    const auto right = static_cast<double>(std::count_if(
        predicted.begin(), predicted.begin() + depth,
        [&](const std::string& phrase) {
          return std::find(references.begin(), references.end(), phrase) !=
                 references.end();
        }));
    const PrecisionRecall shares = {
        .precision = right / static_cast<double>(kOpenkpDepths[i]),
        .recall = right / static_cast<double>(references.size())};
    scores[i] = {.precision = shares.precision,
                 .recall = shares.recall,
                 .f1 = shares.f1()};
  }
  return scores;
}

void OpenkpScorer::AddGold(const std::string& url,
                           const OpenkpReferences& references) {
  Gold& gold = gold_[url];
  gold.evaluator = references.evaluator;
  has_etc_ = has_etc_ && references.has_text;
  if (!gold.etc.has_value() || references.num_valid > gold.etc->num_valid) {
    gold.etc = references;
  }
}

void OpenkpScorer::AddPrediction(const std::string& url,
                                 std::vector<std::string> phrases) {
  predicted_[url] = std::move(phrases);
}

NamedScores OpenkpScorer::Scores() const {
  NamedScores scores;
  if (gold_.empty()) {
    return scores;
  }
  Mean evaluator;
  Mean etc;
  for (const auto& [url, gold] : gold_) {
    const auto found = predicted_.find(url);
    const std::vector<std::string> none;
    const auto& predicted = found == predicted_.end() ? none : found->second;
    evaluator.Add(ScoreKeyPhrases(predicted, gold.evaluator));
    if (has_etc_) {
      etc.Add(gold.etc->is_removed ? DepthScores{}
                                   : ScoreKeyPhrases(predicted, gold.etc->etc));
    }
  }
  evaluator.AppendTo("", &scores);
  if (has_etc_) {
    etc.AppendTo("etc_", &scores);
  }
  return scores;
}

std::optional<std::string> OpenkpScorer::WithoutPrediction() const {
  for (const auto& [url, gold] : gold_) {
    if (!predicted_.contains(url)) {
      return url;
    }
  }
  return std::nullopt;
}

std::optional<std::string> OpenkpScorer::WithoutGold() const {
  for (const auto& [url, phrases] : predicted_) {
    if (!gold_.contains(url)) {
      return url;
    }
  }
  return std::nullopt;
}

absl::StatusOr<NamedScores> ScoreOpenkpFiles(
    const std::string& gold_path, const std::string& predictions_path,
    EmptyPhrases empty) {
  OpenkpScorer scorer;
  ETC_RETURN_IF_ERROR(ReadGold(gold_path, empty, &scorer));
  ETC_RETURN_IF_ERROR(ReadPredictions(predictions_path, &scorer));
  if (const auto url = scorer.WithoutPrediction()) {
    return absl::InvalidArgumentError(
        absl::StrCat(predictions_path,
                     " should have a line for each document "
                     "of ",
                     gold_path, ", but has none for ", *url));
  }
  if (const auto url = scorer.WithoutGold()) {
    return absl::InvalidArgumentError(
        absl::StrCat(predictions_path, " has a line for ", *url,
                     ", which is no document of ", gold_path));
  }
  return scorer.Scores();
}

}  // namespace etc
