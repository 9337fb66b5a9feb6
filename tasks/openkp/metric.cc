#include "tasks/openkp/metric.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tasks/text/answer_normalization.h"

namespace etc {
namespace {

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

  void AppendTo(const std::string& prefix, Metrics* scores) const {
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

// The references of one document by each protocol.
struct DocumentGold {
  std::vector<std::string> evaluator;
  std::optional<OpenkpReferences> etc;
};

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
    scores[i] = {.f1 = shares.f1(),
                 .precision = shares.precision,
                 .recall = shares.recall};
  }
  return scores;
}

Metrics ScoreOpenkp(const ById<OpenkpReferences>& gold,
                    const ById<std::vector<std::string>>& predictions) {
  if (gold.empty()) {
    return {};
  }
  // Ordered by url: a sum in another order would differ in its last digits.
  std::map<std::string, DocumentGold> documents;
  bool has_etc = true;
  for (const auto& [url, references] : gold) {
    DocumentGold& document = documents[url];
    document.evaluator = references.evaluator;
    has_etc = has_etc && references.has_text;
    if (!document.etc.has_value() ||
        references.num_valid > document.etc->num_valid) {
      document.etc = references;
    }
  }
  const auto by_url = LastOfEachId(predictions);
  Mean evaluator;
  Mean etc;
  for (const auto& [url, document] : documents) {
    const std::vector<std::string>* found = FindById(by_url, url);
    const auto predicted =
        found == nullptr ? std::vector<std::string>() : *found;
    evaluator.Add(
        ScoreKeyPhrases(EvaluatorForms(predicted), document.evaluator));
    etc.Add(document.etc->is_removed
                ? DepthScores{}
                : ScoreKeyPhrases(predicted, document.etc->etc));
  }
  Metrics scores;
  evaluator.AppendTo("", &scores);
  if (has_etc) {
    etc.AppendTo("etc_", &scores);
  }
  return scores;
}

}  // namespace etc
