#ifndef ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_
#define ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"

namespace etc {

// The naming styles of tensors in files.
enum class NameStyle {
  // This project: "layers.0.attention.long_query.weight".
  kRealEtc,
  // ETC's TensorFlow code, after "etc_document_bert/" (doc/formats.md 3.1).
  kOfficialEtc,
  // BERT's and RealFormer's TensorFlow code, after "bert/"
  // (doc/formats.md 3.2).
  kGoogleBert,
  // HuggingFace's BERT and RoBERTa, after "bert." (doc/formats.md 3.3).
  kHuggingFace,
};

// "official ETC", "HuggingFace BERT", ...
const char* NameStyleDescription(NameStyle style);

// The purpose of a parameter, as far as the plan of its source depends on it.
enum class ParameterRole {
  kTokenTable,
  kTokenProjection,
  kSegmentTable,
  kPositionTable,
  // Keys and biases of relative ids, which BERT does not have.
  kRelativePosition,
  // One number for each token (pretraining_parameters.h).
  kTokenBias,
  // Factors of carried scores in residual attention "gate", which only our
  // files have.
  kGate,
  // LayerNorms, alphas and omegas of the residual connections of layers, which
  // `sublayer` decides on.
  kResidualConnection,
  // Projections, feed-forward layers, other LayerNorms.
  kLayer,
};

// One parameter of the encoder and its name in each style.
struct EncoderParameter {
  std::string name;            // ours
  std::vector<int64_t> shape;  // ours
  ParameterRole role = ParameterRole::kLayer;
  // A dense kernel: [out, in] in LibTorch, [in, out] in TensorFlow. No other
  // layout differs; head h is rows h * head_dim to (h + 1) * head_dim - 1 of a
  // projection's [out] in all styles.
  bool is_kernel = false;

  std::string official_etc;  // empty if ETC's code has no such parameter
  // Empty if BERT has no such parameter. One of BERT's can be several of ours:
  // its LayerNorm of the embeddings is that of the long and of the global
  // tokens.
  std::string google_bert;
  std::string hugging_face;

  // Parameters of ours that a model which shares them has in its place. The
  // first one that it has is used.
  std::vector<std::string> stand_ins;
};

// The name that `style` gives it; empty if it gives none.
const std::string& NameInStyle(const EncoderParameter& parameter,
                               NameStyle style);

// Returns true if `style` stores it transposed.
bool IsTransposedInStyle(const EncoderParameter& parameter, NameStyle style);

// The shape that `style` stores it in.
std::vector<int64_t> ShapeInStyle(const EncoderParameter& parameter,
                                  NameStyle style);

// All parameters of an EtcModel of this configuration, embeddings first, then
// layer by layer (doc/formats.md 3.1; doc/model.md 7.2), then those behind the
// layers. `config` has passed CheckEtcConfig.
std::vector<EncoderParameter> EncoderParameters(const EtcConfig& config);

// The names of the gates that a model of these sizes has in residual attention
// "gate"; the mode of `config` does not matter.
std::vector<std::string> GateNames(const EtcConfig& config);

// Returns true if a parameter of this name is a gate: the last component is
// "gate" (MultiHeadAttention) or ends in "_gate".
bool IsGate(absl::string_view name);

// The tensors of a file, by the names that their style gives them.
struct RecognizedNames {
  NameStyle style = NameStyle::kRealEtc;
  // Prefix of the encoder's names in the file: "bert/".
  std::string prefix;
  // Maps the rest of the name of each tensor with the prefix, as
  // EncoderParameters spells it, to the name in the file:
  // "embeddings.LayerNorm.weight" to "bert.embeddings.LayerNorm.gamma".
  std::map<std::string, std::string> stored_as;
};

// The name of a tensor of a file without the prefix, if it has that, and with
// the last component of LayerNorms as EncoderParameters spells it.
std::string PlainName(const RecognizedNames& names, absl::string_view name);

// Finds the naming style of the tensors `names` in the file `source`, by the
// name of the token table.
//   kInvalidArgument  no known style, two styles, or one tensor in two
//                     spellings
absl::StatusOr<RecognizedNames> RecognizeNames(
    const std::vector<std::string>& names, const std::string& source);

// The same of the tensors of an open file: by their stored names or, if these
// have no token table, by those too that its metadata give for stored tensors
// (doc/formats.md 1.3).
class TensorSource;
absl::StatusOr<RecognizedNames> RecognizeNames(const TensorSource& tensors,
                                               const std::string& source);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_
