#ifndef ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_
#define ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "etc/config.h"

namespace etc {

// Who named the tensors of a file.
enum class NameStyle {
  // This project: "layers.0.attention.long_query.weight".
  kRealEtc,
  // ETC's TensorFlow code, after "etc_document_bert/" (formats spec 3.1).
  kOfficialEtc,
  // BERT's and RealFormer's TensorFlow code, after "bert/" (formats spec 3.2).
  kGoogleBert,
  // HuggingFace's BERT and RoBERTa, after "bert." (formats spec 3.3).
  kHuggingFace,
};

// "official ETC", "HuggingFace BERT", ...
const char* NameStyleDescription(NameStyle style);

// What a parameter is for, as far as it decides where it may come from.
enum class ParameterRole {
  kTokenTable,
  kTokenProjection,
  kSegmentTable,
  kPositionTable,
  // Keys and biases of relative ids: what BERT has not.
  kRelativePosition,
  // Projections, feed-forward layers, LayerNorms.
  kLayer,
};

// One parameter of the encoder and what each style calls it.
struct EncoderParameter {
  std::string name;            // ours
  std::vector<int64_t> shape;  // ours
  ParameterRole role = ParameterRole::kLayer;
  // A dense kernel: [out, in] for LibTorch, [in, out] for TensorFlow. Nothing
  // else differs in layout; heads are the rows h * d to h * d + d - 1 of a
  // projection's [out] everywhere.
  bool is_kernel = false;

  std::string official_etc;
  // Empty where BERT has no such thing. One of BERT's can stand for several of
  // ours: its LayerNorm of the embeddings for that of the long tokens and that
  // of the global ones.
  std::string google_bert;
  std::string hugging_face;

  // Ours that serve for this one in a model that shares them; the first one
  // that such a model has is meant.
  std::vector<std::string> stand_ins;
};

// The name that `style` gives it; empty if it gives none.
const std::string& NameInStyle(const EncoderParameter& parameter,
                               NameStyle style);

// Whether its kernel is stored the other way round than ours.
bool IsTransposedInStyle(const EncoderParameter& parameter, NameStyle style);

// The shape that `style` stores it in.
std::vector<int64_t> ShapeInStyle(const EncoderParameter& parameter,
                                  NameStyle style);

// All parameters of an EtcModel of this configuration, embeddings first, then
// layer by layer (formats spec 3.1; model spec 7.2). `config` has passed
// CheckEtcConfig.
std::vector<EncoderParameter> EncoderParameters(const EtcConfig& config);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_ENCODER_PARAMETERS_H_
