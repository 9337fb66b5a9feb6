#include "etc/weights/encoder_parameters.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace etc {
namespace {

// The parameters that a part of the model has: their last name components and
// shapes, in each style.
enum class Kind {
  kTable,     // ours "weight" [in, out]; rows are never transposed
  kDense,     // ours "weight" [out, in], "bias" [out]
  kNorm,      // ours "weight" [out], "bias" [out]
  kRelative,  // ours "embedding" [R, heads, head size], "bias" [R, heads]
};

// Sizes of the configuration.
enum class Size {
  kNone,
  kVocabulary,
  kSegments,
  kPositions,
  kEmbedding,
  kHidden,
  kAttention,
  kIntermediate
};

// When a part exists.
enum class If {
  kAlways,
  kEmbeddingIsProjected,
  kHasPositions,
  kHasRelative,
  kKeysApart,     // neither share_kv nor share_qkv
  kStreamsApart,  // not share_qkv
  kOutputsApart,
  kFeedForwardShared,
  kFeedForwardApart,
};

struct Part {
  Kind kind;
  ParameterRole role;
  If exists;
  Size in;
  Size out;
  // N is the number of the layer, from 0.
  const char* ours;
  const char* official_etc;
  const char* bert;       // as Google spells it; null if there is none
  const char* stand_ins;  // of ours, by commas
};

using R = ParameterRole;
constexpr Size kH = Size::kHidden;
constexpr Size kA = Size::kAttention;
constexpr Size kF = Size::kIntermediate;

// doc/formats.md 3.1 to 3.4.
constexpr Part kEmbeddingParts[] = {
    {Kind::kTable, R::kTokenTable, If::kAlways, Size::kVocabulary,
     Size::kEmbedding, "embedding.token", "token_emb_lookup",
     "embeddings/word_embeddings", ""},
    {Kind::kDense, R::kTokenProjection, If::kEmbeddingIsProjected,
     Size::kEmbedding, kH, "embedding.token.projection",
     "token_emb_lookup/projection", nullptr, ""},
    {Kind::kTable, R::kSegmentTable, If::kAlways, Size::kSegments, kH,
     "embedding.segment", "segment_emb_lookup",
     "embeddings/token_type_embeddings", ""},
    {Kind::kTable, R::kPositionTable, If::kHasPositions, Size::kPositions, kH,
     "embedding.long_position", "position_emb_lookup_long",
     "embeddings/position_embeddings", ""},
    {Kind::kTable, R::kPositionTable, If::kHasPositions, Size::kPositions, kH,
     "embedding.global_position", "position_emb_lookup_global",
     "embeddings/position_embeddings", ""},
    {Kind::kNorm, R::kLayer, If::kAlways, Size::kNone, kH,
     "embedding.long_norm", "long_emb_layer_norm", "embeddings/LayerNorm", ""},
    {Kind::kNorm, R::kLayer, If::kAlways, Size::kNone, kH,
     "embedding.global_norm", "global_emb_layer_norm", "embeddings/LayerNorm",
     ""},
};

// Prefixes of the names of all parts of layers.
constexpr char kOursLayer[] = "layers.N.";
constexpr char kOfficialLayers[] = "global_local_transformer_layers/";
constexpr char kBertLayer[] = "encoder/layer_N/";

#define ETC_ATTENTION_PART "fused_att_layer_N/fused_global_local_att/"
constexpr Part kLayerParts[] = {
    {Kind::kDense, R::kLayer, If::kAlways, kH, kA, "attention.long_query",
     ETC_ATTENTION_PART "long_query_projection/linear", "attention/self/query",
     ""},
    {Kind::kDense, R::kLayer, If::kAlways, kH, kA, "attention.l2l_key",
     ETC_ATTENTION_PART "l2l_key_projection/linear", "attention/self/key", ""},
    {Kind::kDense, R::kLayer, If::kKeysApart, kH, kA, "attention.l2g_key",
     ETC_ATTENTION_PART "l2g_key_projection/linear", "attention/self/key",
     "attention.l2l_key"},
    {Kind::kDense, R::kLayer, If::kAlways, kH, kA, "attention.l2l_value",
     ETC_ATTENTION_PART "l2l_value_projection/linear", "attention/self/value",
     ""},
    {Kind::kDense, R::kLayer, If::kKeysApart, kH, kA, "attention.l2g_value",
     ETC_ATTENTION_PART "l2g_value_projection/linear", "attention/self/value",
     "attention.l2l_value"},
    {Kind::kDense, R::kLayer, If::kStreamsApart, kH, kA,
     "attention.global_query",
     ETC_ATTENTION_PART "global_query_projection/linear",
     "attention/self/query", "attention.long_query"},
    {Kind::kDense, R::kLayer, If::kStreamsApart, kH, kA, "attention.g2g_key",
     ETC_ATTENTION_PART "g2g_key_projection/linear", "attention/self/key",
     "attention.l2l_key"},
    {Kind::kDense, R::kLayer, If::kKeysApart, kH, kA, "attention.g2l_key",
     ETC_ATTENTION_PART "g2l_key_projection/linear", "attention/self/key",
     "attention.g2g_key,attention.l2l_key"},
    {Kind::kDense, R::kLayer, If::kStreamsApart, kH, kA, "attention.g2g_value",
     ETC_ATTENTION_PART "g2g_value_projection/linear", "attention/self/value",
     "attention.l2l_value"},
    {Kind::kDense, R::kLayer, If::kKeysApart, kH, kA, "attention.g2l_value",
     ETC_ATTENTION_PART "g2l_value_projection/linear", "attention/self/value",
     "attention.g2g_value,attention.l2l_value"},
    {Kind::kDense, R::kLayer, If::kAlways, kA, kH, "attention.long_output",
     ETC_ATTENTION_PART "long_output_projection", "attention/output/dense", ""},
    {Kind::kDense, R::kLayer, If::kOutputsApart, kA, kH,
     "attention.global_output", ETC_ATTENTION_PART "global_output_projection",
     "attention/output/dense", "attention.long_output"},
    {Kind::kRelative, R::kRelativePosition, If::kHasRelative, Size::kNone,
     Size::kNone, "attention.long_relative",
     ETC_ATTENTION_PART "long_qkv_attention/qkv_relative_attention", nullptr,
     ""},
    {Kind::kRelative, R::kRelativePosition, If::kHasRelative, Size::kNone,
     Size::kNone, "attention.global_relative",
     ETC_ATTENTION_PART "global_qkv_attention", nullptr, ""},
    {Kind::kNorm, R::kLayer, If::kAlways, Size::kNone, kH,
     "long_attention_norm", "fused_att_layer_N/layer_norm_0",
     "attention/output/LayerNorm", ""},
    {Kind::kNorm, R::kLayer, If::kAlways, Size::kNone, kH,
     "global_attention_norm", "fused_att_layer_N/layer_norm_1",
     "attention/output/LayerNorm", ""},
    {Kind::kDense, R::kLayer, If::kFeedForwardShared, kH, kF,
     "feed_forward.intermediate", "feed_forward_layer_N/dense_layers/layer_0",
     "intermediate/dense", ""},
    {Kind::kDense, R::kLayer, If::kFeedForwardShared, kF, kH,
     "feed_forward.output", "feed_forward_layer_N/dense_layers/layer_1",
     "output/dense", ""},
    {Kind::kNorm, R::kLayer, If::kFeedForwardShared, Size::kNone, kH,
     "feed_forward.norm", "feed_forward_layer_N/layer_norm", "output/LayerNorm",
     ""},
    {Kind::kDense, R::kLayer, If::kFeedForwardApart, kH, kF,
     "long_feed_forward.intermediate",
     "long_feed_forward_layer_N/dense_layers/layer_0", "intermediate/dense",
     "feed_forward.intermediate"},
    {Kind::kDense, R::kLayer, If::kFeedForwardApart, kF, kH,
     "long_feed_forward.output",
     "long_feed_forward_layer_N/dense_layers/layer_1", "output/dense",
     "feed_forward.output"},
    {Kind::kNorm, R::kLayer, If::kFeedForwardApart, Size::kNone, kH,
     "long_feed_forward.norm", "long_feed_forward_layer_N/layer_norm",
     "output/LayerNorm", "feed_forward.norm"},
    {Kind::kDense, R::kLayer, If::kFeedForwardApart, kH, kF,
     "global_feed_forward.intermediate",
     "global_feed_forward_layer_N/dense_layers/layer_0", "intermediate/dense",
     "feed_forward.intermediate"},
    {Kind::kDense, R::kLayer, If::kFeedForwardApart, kF, kH,
     "global_feed_forward.output",
     "global_feed_forward_layer_N/dense_layers/layer_1", "output/dense",
     "feed_forward.output"},
    {Kind::kNorm, R::kLayer, If::kFeedForwardApart, Size::kNone, kH,
     "global_feed_forward.norm", "global_feed_forward_layer_N/layer_norm",
     "output/LayerNorm", "feed_forward.norm"},
};
#undef ETC_ATTENTION_PART

// The last components of names, in our order. Google's tables have none.
struct Leaf {
  const char* ours;
  const char* official_etc;
  const char* google_bert;
  const char* hugging_face;
};
constexpr Leaf kTableLeaves[] = {
    {".weight", "/embedding_table", "", ".weight"}};
constexpr Leaf kDenseLeaves[] = {{".weight", "/kernel", "/kernel", ".weight"},
                                 {".bias", "/bias", "/bias", ".bias"}};
constexpr Leaf kNormLeaves[] = {{".weight", "/gamma", "/gamma", ".weight"},
                                {".bias", "/beta", "/beta", ".bias"}};
constexpr Leaf kRelativeLeaves[] = {
    {".embedding", "/relative_emb_table", "", ""},
    {".bias", "/relative_bias_table", "", ""}};

bool Exists(If condition, const EtcConfig& config) {
  switch (condition) {
    case If::kAlways:
      return true;
    case If::kEmbeddingIsProjected:
      return config.token_embedding_size() != config.hidden_size;
    case If::kHasPositions:
      return config.max_absolute_position_embeddings > 0;
    case If::kHasRelative:
      return config.relative_vocab_size.has_value();
    case If::kKeysApart:
      return !config.share_qkv_projections && !config.share_kv_projections;
    case If::kStreamsApart:
      return !config.share_qkv_projections;
    case If::kOutputsApart:
      return !config.share_att_output_projection;
    case If::kFeedForwardShared:
      return config.share_feed_forward_params;
    case If::kFeedForwardApart:
      return !config.share_feed_forward_params;
  }
  return false;
}

int64_t SizeOf(Size size, const EtcConfig& config) {
  switch (size) {
    case Size::kNone:
      return 0;
    case Size::kVocabulary:
      return config.vocab_size;
    case Size::kSegments:
      return config.segment_vocab_size;
    case Size::kPositions:
      return config.max_absolute_position_embeddings;
    case Size::kEmbedding:
      return config.token_embedding_size();
    case Size::kHidden:
      return config.hidden_size;
    case Size::kAttention:
      return config.num_attention_heads * config.head_size();
    case Size::kIntermediate:
      return config.intermediate_size;
  }
  return 0;
}

// The shapes of a part's parameters, in the order of its leaves.
std::vector<std::vector<int64_t>> Shapes(const Part& part,
                                         const EtcConfig& config) {
  const int64_t in = SizeOf(part.in, config);
  const int64_t out = SizeOf(part.out, config);
  const int64_t ids = config.relative_vocab_size.value_or(0);
  const int64_t heads = config.num_attention_heads;
  switch (part.kind) {
    case Kind::kTable:
      return {{in, out}};
    case Kind::kDense:
      return {{out, in}, {out}};
    case Kind::kNorm:
      return {{out}, {out}};
    case Kind::kRelative:
      return {{ids, heads, config.head_size()}, {ids, heads}};
  }
  return {};
}

std::vector<Leaf> Leaves(Kind kind) {
  switch (kind) {
    case Kind::kTable:
      return {std::begin(kTableLeaves), std::end(kTableLeaves)};
    case Kind::kDense:
      return {std::begin(kDenseLeaves), std::end(kDenseLeaves)};
    case Kind::kNorm:
      return {std::begin(kNormLeaves), std::end(kNormLeaves)};
    case Kind::kRelative:
      return {std::begin(kRelativeLeaves), std::end(kRelativeLeaves)};
  }
  return {};
}

// The prefixes of the names of a part.
struct Prefixes {
  std::string ours;
  std::string official_etc;
  std::string bert;
};

void Append(const Part& part, const Prefixes& prefixes, int64_t layer,
            const EtcConfig& config, std::vector<EncoderParameter>* all) {
  if (!Exists(part.exists, config)) {
    return;
  }
  const std::string number = absl::StrCat(layer);
  const auto numbered = [&](absl::string_view name) {
    return absl::StrReplaceAll(name,
                               {{"layer_N", absl::StrCat("layer_", number)},
                                {"layers.N", absl::StrCat("layers.", number)}});
  };
  const std::vector<Leaf> leaves = Leaves(part.kind);
  const std::vector<std::vector<int64_t>> shapes = Shapes(part, config);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    EncoderParameter parameter{.shape = shapes[i], .role = part.role};
    parameter.name =
        numbered(absl::StrCat(prefixes.ours, part.ours, leaf.ours));
    parameter.is_kernel = part.kind == Kind::kDense && i == 0;
    parameter.official_etc = numbered(absl::StrCat(
        prefixes.official_etc, part.official_etc, leaf.official_etc));
    if (part.bert != nullptr) {
      const std::string bert = absl::StrCat(prefixes.bert, part.bert);
      parameter.google_bert = numbered(absl::StrCat(bert, leaf.google_bert));
      // The same words, otherwise joined.
      parameter.hugging_face = absl::StrCat(
          absl::StrReplaceAll(numbered(bert),
                              {{"/layer_", ".layer."}, {"/", "."}}),
          leaf.hugging_face);
    }
    for (const absl::string_view stand_in :
         absl::StrSplit(part.stand_ins, ',', absl::SkipEmpty())) {
      parameter.stand_ins.push_back(
          numbered(absl::StrCat(prefixes.ours, stand_in, leaf.ours)));
    }
    all->push_back(std::move(parameter));
  }
}

}  // namespace

const char* NameStyleDescription(NameStyle style) {
  switch (style) {
    case NameStyle::kRealEtc:
      return "RealETC";
    case NameStyle::kOfficialEtc:
      return "official ETC";
    case NameStyle::kGoogleBert:
      return "Google BERT or RealFormer";
    case NameStyle::kHuggingFace:
      return "HuggingFace BERT or RoBERTa";
  }
  return "";
}

const std::string& NameInStyle(const EncoderParameter& parameter,
                               NameStyle style) {
  switch (style) {
    case NameStyle::kRealEtc:
      return parameter.name;
    case NameStyle::kOfficialEtc:
      return parameter.official_etc;
    case NameStyle::kGoogleBert:
      return parameter.google_bert;
    case NameStyle::kHuggingFace:
      break;
  }
  return parameter.hugging_face;
}

bool IsTransposedInStyle(const EncoderParameter& parameter, NameStyle style) {
  return parameter.is_kernel &&
         (style == NameStyle::kOfficialEtc || style == NameStyle::kGoogleBert);
}

std::vector<int64_t> ShapeInStyle(const EncoderParameter& parameter,
                                  NameStyle style) {
  std::vector<int64_t> shape = parameter.shape;
  if (IsTransposedInStyle(parameter, style)) {
    std::reverse(shape.begin(), shape.end());
  }
  return shape;
}

std::vector<EncoderParameter> EncoderParameters(const EtcConfig& config) {
  std::vector<EncoderParameter> all;
  for (const Part& part : kEmbeddingParts) {
    Append(part, {}, 0, config, &all);
  }
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    for (const Part& part : kLayerParts) {
      Append(part, {kOursLayer, kOfficialLayers, kBertLayer}, layer, config,
             &all);
    }
  }
  return all;
}

}  // namespace etc
