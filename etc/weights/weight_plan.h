#ifndef ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_
#define ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/tensor_names.h"

namespace etc {

// An encoder's weights in a file, whoever wrote it, and the encoder they are
// of: BERT's as the special case of ETC that it is (see bert_config.h).
struct SourceWeights {
  std::string path;
  std::map<std::string, TensorInfo> tensors;
  RecognizedNames names;
  EtcConfig config;
  // The row of the position tables that the first token uses: 2 in RoBERTa's,
  // whose padding has the rows before it.
  int64_t first_position = 0;
};

// How one parameter of the target comes about.
struct WeightStep {
  EncoderParameter target;
  // The tensor in the file; empty: the parameter stays as it was initialised.
  std::string source;
  bool transpose = false;
  // For each row of the target the row of the source, or -1 where it stays as
  // it was initialised; empty: all rows as they are.
  std::vector<int64_t> rows;
  // In words: "transposed", "rows 2 to 513", "freshly initialised".
  std::string how;
};

struct DroppedTensor {
  std::string name;
  std::string why;
};

struct WeightPlan {
  std::vector<WeightStep> steps;       // one for each parameter of the target
  std::vector<DroppedTensor> dropped;  // each tensor of the file not needed
  int64_t bookkeeping = 0;             // optimizer slots and counters
  std::vector<std::string> notices;

  int64_t NumFresh() const;
};

struct WeightPlanOptions {
  // What becomes of the rows of the segment table when BERT is lifted: its row
  // 0, which is what BERT gave to all tokens of a text, into every row, or rows
  // by index as far as there are any (formats spec 3.4).
  enum class Segments { kBroadcast, kByIndex };
  Segments segments = Segments::kBroadcast;
  // For each row of the target's token table that of the source with the same
  // piece, or -1. Empty: the vocabularies are the same.
  std::vector<int64_t> token_rows;
};

// Says of each parameter of an encoder of the configuration `target` where in
// the source it comes from, without reading any (formats spec 3; model spec
// 11). Where the source shares projections and the target does not, each gets
// a copy; so BERT, which has one query, one key and one value projection, is
// lifted to ETC. Then, too, absolute positions are dropped and the parameters
// of relative ones are new.
//   kInvalidArgument  sizes or the order of LayerNorms differ, tensors are not
//                     there or of another shape or no floating numbers, or
//                     something that matters in the source has no place in the
//                     target; the message names it
absl::StatusOr<WeightPlan> PlanWeights(const SourceWeights& source,
                                       const EtcConfig& target,
                                       const WeightPlanOptions& options = {});

// Whether positions are absolute only, as in BERT and RoBERTa.
bool HasOnlyAbsolutePositions(const EtcConfig& config);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_
