#ifndef ETC_TASKS_OPENKP_METRIC_H_
#define ETC_TASKS_OPENKP_METRIC_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/openkp/references.h"

namespace etc {

// Of one document, or the mean over documents; shares in [0, 1].
struct DepthScore {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

// After how many predictions is scored.
inline constexpr std::array<int64_t, 3> kOpenkpDepths = {1, 3, 5};
using DepthScores = std::array<DepthScore, kOpenkpDepths.size()>;

// The score of one document (openkp spec 8.1). With t the number of the first k
// predictions that are references,
//
//   P@k = t / k    R@k = t / |references|    F1@k = 2 P R / (P + R)
//
// The divisor is k even if there are fewer predictions. Both lists have no
// phrase twice. Without references all is 0.
DepthScores ScoreKeyPhrases(const std::vector<std::string>& predicted,
                            const std::vector<std::string>& references);

// The scores of a data set by both protocols (openkp spec 8.2, 8.3), each a
// mean over documents:
//
//   evaluator  the official script: all references; of several records or
//              predictions of one url, the last
//   etc        as ETC reports it: ETC's references; of several records the one
//              with most key phrases in its text; documents that ETC cannot
//              make an example of count as 0
class OpenkpScorer {
 public:
  // There is no score by ETC's protocol if any of the references is without
  // text.
  void AddGold(const std::string& url, const OpenkpReferences& references);
  void AddPrediction(const std::string& url, std::vector<std::string> phrases);

  // "p@1", "r@1", "f1@1", "p@3", ..., "etc_p@1", ... Empty without gold.
  std::vector<std::pair<std::string, double>> Scores() const;

  // Nothing, or the url of a document that has references but no prediction, or
  // the other way round.
  std::optional<std::string> WithoutPrediction() const;
  std::optional<std::string> WithoutGold() const;

 private:
  struct Gold {
    std::vector<std::string> evaluator;
    std::optional<OpenkpReferences> etc;
  };
  std::map<std::string, Gold> gold_;
  std::map<std::string, std::vector<std::string>> predicted_;
  bool has_etc_ = true;
};

// Scores a prediction file against a data file with key phrases: the official
// one, or lines of `url` and "KeyPhrases" only, for which there is no score by
// ETC's protocol. `empty` is about that protocol.
//   kInvalidArgument  either is not as its format has it; they are not about
//                     the same documents
absl::StatusOr<std::vector<std::pair<std::string, double>>> ScoreOpenkpFiles(
    const std::string& gold_path, const std::string& predictions_path,
    EmptyPhrases empty = EmptyPhrases::kLeftOut);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_METRIC_H_
