#ifndef ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_
#define ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/hugging_face_fields.h"

namespace etc {

// Returns true if a tensor of this name is no weight, but left by training or
// saving: optimizer slots, step counters (doc/formats.md 2.8), position
// numbers.
bool IsBookkeeping(absl::string_view name);

// Returns true if LibTorch reads tensors of the dtype `name` as floating ones:
// "F32" or "BF16", but not "F8_E4M3".
bool IsFloating(absl::string_view name);

// An encoder's weights as files describe them, whichever project wrote them.
// BERT is described as the special case of ETC that it is (source_config.h).
struct SourceWeights {
  std::string path;
  std::map<std::string, TensorInfo> tensors;
  RecognizedNames names;
  EtcConfig config;
  // The row of the position tables that the first token uses: 2 in RoBERTa,
  // where the rows before are for padding.
  int64_t first_position = 0;
  // Present for our files, too, which have them in their metadata.
  HuggingFaceFields hugging_face;
};

// Describes the mistake in a tensor of the source that should hold floating
// numbers of the shape `expected`; empty if there is none.
std::string StoredTensorMistake(const SourceWeights& source,
                                const std::string& stored,
                                const std::vector<int64_t>& expected);

// One tensor of a file that is copied into one of a model (CopyTensors).
struct TensorCopy {
  std::string source;      // name in the file
  std::string target;      // name in the model
  bool transpose = false;  // the file has the matrix [b, a] for [a, b]
  // The row of the source for each row of the target, or -1 if it is left as it
  // is. Empty: all rows in order.
  std::vector<int64_t> rows;
};

// The source of one parameter of the target.
struct WeightStep {
  EncoderParameter target;
  std::string source;      // empty: it stays as it was initialised
  bool transpose = false;  // these as in TensorCopy
  std::vector<int64_t> rows;
  // In words: "transposed", "rows 2 to 513", "freshly initialised".
  std::string how;
};

struct DroppedTensor {
  std::string name;
  std::string why;
  // "MLM head" if it is a part of one of pre-training's; else empty.
  std::string head;
};

// The copies of all steps that have a source.
std::vector<TensorCopy> CopiesOf(const std::vector<WeightStep>& steps);

struct WeightPlan {
  std::vector<WeightStep> steps;       // one for each parameter of the target
  std::vector<DroppedTensor> dropped;  // tensors of the file not needed
  int64_t bookkeeping = 0;             // tensors that are no weights
  std::vector<std::string> notices;

  // Parameters of the target that the file has no tensor for and that are drawn
  // anew: all of these but gates.
  std::vector<std::string> FreshNames() const;
  int64_t NumFresh() const { return static_cast<int64_t>(FreshNames().size()); }
  // Gates that the file has none for: they begin with residual_gate_init.
  int64_t NumNewGates() const;
  // The copies of all other parameters.
  std::vector<TensorCopy> Copies() const { return CopiesOf(steps); }
};

struct WeightPlanOptions {
  // The rows of the segment table when BERT is lifted: BERT's row 0, which it
  // used for all tokens of a single text, in every row; or rows by index as far
  // as BERT has them (doc/formats.md 3.4).
  enum class Segments { kBroadcast, kByIndex };
  Segments segments = Segments::kBroadcast;
  // The row of the source with the same piece for each row of the target's
  // token table, or -1. Empty: the vocabularies are the same.
  std::vector<int64_t> token_rows;
};

// Plans how the parameters of an encoder of the configuration `target` are
// filled from the source, without reading any tensor (doc/formats.md 3;
// doc/model.md 11). Where the source shares projections and the target does
// not, each gets a copy. So BERT, which has one query, one key and one value
// projection, is lifted to ETC; its absolute positions are dropped then, and
// the parameters of relative positions stay as initialised, as do alphas and
// omegas (Sublayer) that a source without them cannot give. A target with
// "rezero" takes the weights of all others but for their LayerNorms, one with
// "admin" those with "post_norm" as well.
//
// Gates (residual attention "gate") need not be on both sides: where the file
// has none they stay as initialised, and where the target has none they are
// dropped; a notice says so.
//   kInvalidArgument  sizes or sublayers differ otherwise, tensors are
//                     missing, of another shape or not floating, or a weight of
//                     the source has no place in the target; the message names
//                     it
absl::StatusOr<WeightPlan> PlanWeights(const SourceWeights& source,
                                       const EtcConfig& target,
                                       const WeightPlanOptions& options = {});

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WEIGHT_PLAN_H_
