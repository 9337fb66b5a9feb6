#ifndef ETC_ETC_WEIGHTS_HEAD_PLAN_H_
#define ETC_ETC_WEIGHTS_HEAD_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/pretraining_parameters.h"
#include "etc/weights/weight_plan.h"

namespace etc {

// A tensor of a file that must have the elements of another one, which is read.
struct TiedTensor {
  std::string name;
  std::string same_as;
};

// A plan to fill heads from a file, made without reading any tensor.
struct HeadPlan {
  std::vector<PretrainingHead> found;
  std::vector<PretrainingHead> missing;  // wanted, but not in the file
  // One for each parameter of the heads found.
  std::vector<WeightStep> steps;
  // Other names of the output bias, and the decoder's weight, which is the
  // token table: untied decoders are not supported.
  std::vector<TiedTensor> tied;
  // Reasons why heads that are in the file are not taken.
  std::vector<std::string> notices;

  bool Uses(const std::string& name) const;
  bool Has(PretrainingHead head) const;
  // "MLM head: found", "NSP head: not in the file, starts at random".
  std::vector<std::string> Messages() const;
};

// The heads of pre-training and those of fine-tuned models.
std::vector<PretrainingHead> AllHeads();

struct HeadPlanOptions {
  std::vector<PretrainingHead> heads = {std::begin(kAllPretrainingHeads),
                                        std::end(kAllPretrainingHeads)};
  // Like WeightPlanOptions::token_rows, for the bias of each token.
  std::vector<int64_t> token_rows;
  // The file's row for each output of the wanted classifier. Empty: all in
  // order.
  std::vector<int64_t> output_rows;
};

// The outputs of the file's classifier; 0 if it has none.
int64_t NumClassifierOutputs(const SourceWeights& source);

// True if that classifier reads the pooler's output for a whole text, as in
// BertForSequenceClassification and RobertaForSequenceClassification, not each
// token or choice. False without a classifier or a pooler.
bool ClassifiesTexts(const SourceWeights& source);
// True if it reads each token, as in BertForTokenClassification.
bool ClassifiesTokens(const SourceWeights& source);

// Plans which of the wanted heads are filled from the source, for an encoder of
// the configuration `target`, whose sizes PlanWeights has found to fit. A
// classifier has as many outputs as in the file, or as output_rows. RoBERTa's
// classifier of texts has its own pooler, which is the one then. RoBERTa's MLM
// head computes the exact gelu whatever hidden_act says; where ours would not,
// it counts as missing, with a notice.
//   kInvalidArgument  the file has some tensors of a head, but not all; or
//                     tensors of another shape or that are not floating; the
//                     message names them
absl::StatusOr<HeadPlan> PlanHeads(const SourceWeights& source,
                                   const EtcConfig& target,
                                   const HeadPlanOptions& options = {});

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_HEAD_PLAN_H_
