#include "etc/weights/encoder_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace etc {
namespace {

// The parameters that a part of the model has: see LeavesOf.
enum class PartKind {
  kTable,
  kDense,
  kNorm,
  kRelative,
  kPerHead,
  kAlpha,
  kOmega
};

// Sizes of the configuration that parts have.
int64_t NoSize(const EtcConfig&) { return 0; }
int64_t Vocabulary(const EtcConfig& c) { return c.vocab_size; }
int64_t Segments(const EtcConfig& c) { return c.segment_vocab_size; }
int64_t Positions(const EtcConfig& c) {
  return c.max_absolute_position_embeddings;
}
int64_t TokenWidth(const EtcConfig& c) { return c.token_embedding_size(); }
int64_t Hidden(const EtcConfig& c) { return c.hidden_size; }
int64_t AllHeads(const EtcConfig& c) {
  return c.num_attention_heads * c.head_size();
}
int64_t Intermediate(const EtcConfig& c) { return c.intermediate_size; }

// Conditions under which a part exists.
bool Always(const EtcConfig&) { return true; }
bool IsProjected(const EtcConfig& c) { return TokenWidth(c) != Hidden(c); }
bool HasPositions(const EtcConfig& c) { return Positions(c) > 0; }
bool HasLong(const EtcConfig& c) { return c.has_long_tokens; }
bool HasLongPositions(const EtcConfig& c) {
  return HasLong(c) && HasPositions(c);
}
bool HasFinalNorm(const EtcConfig& c) { return c.final_layer_norm; }
bool HasLongFinalNorm(const EtcConfig& c) {
  return HasLong(c) && HasFinalNorm(c);
}
bool HasGates(const EtcConfig& c) { return c.residual_attention == "gate"; }
bool HasLongGates(const EtcConfig& c) { return HasLong(c) && HasGates(c); }
bool HasIds(const EtcConfig& c) { return c.relative_vocab_size.has_value(); }
bool HasLongIds(const EtcConfig& c) { return HasLong(c) && HasIds(c); }
bool StreamsApart(const EtcConfig& c) { return !c.share_qkv_projections; }
bool KeysApart(const EtcConfig& c) {
  return StreamsApart(c) && !c.share_kv_projections;
}
bool OutputsApart(const EtcConfig& c) { return !c.share_att_output_projection; }
bool OneInner(const EtcConfig& c) { return c.share_feed_forward_params; }
bool TwoInner(const EtcConfig& c) { return !c.share_feed_forward_params; }

bool IsReZero(const EtcConfig& c) {
  return SublayerFromName(c.sublayer) == Sublayer::kReZero;
}
bool IsAdmin(const EtcConfig& c) {
  return SublayerFromName(c.sublayer) == Sublayer::kAdmin;
}

// Conditions under which the residual connection of a block has a parameter.
template <bool (*kStream)(const EtcConfig&)>
bool WithNorm(const EtcConfig& c) {
  return kStream(c) && !IsReZero(c);
}
template <bool (*kStream)(const EtcConfig&)>
bool WithAlpha(const EtcConfig& c) {
  return kStream(c) && IsReZero(c);
}
template <bool (*kStream)(const EtcConfig&)>
bool WithOmega(const EtcConfig& c) {
  return kStream(c) && IsAdmin(c);
}

struct Part {
  PartKind kind;
  ParameterRole role;
  bool (*exists)(const EtcConfig& config);
  int64_t (*in)(const EtcConfig& config);
  int64_t (*out)(const EtcConfig& config);
  // N is the number of the layer, from 0.
  const char* ours;
  const char* official_etc;  // null if there is none
  const char* bert;          // as Google spells it; null if there is none
  const char* stand_ins;     // of ours, by commas
};

using enum PartKind;
using enum ParameterRole;
// doc/formats.md 3.1 to 3.4.
constexpr Part kEmbeddingParts[] = {
    {kTable, kTokenTable, Always, Vocabulary, TokenWidth, "embedding.token",
     "token_emb_lookup", "embeddings/word_embeddings", ""},
    {kDense, kTokenProjection, IsProjected, TokenWidth, Hidden,
     "embedding.token.projection", "token_emb_lookup/projection", nullptr, ""},
    {kTable, kSegmentTable, Always, Segments, Hidden, "embedding.segment",
     "segment_emb_lookup", "embeddings/token_type_embeddings", ""},
    {kTable, kPositionTable, HasLongPositions, Positions, Hidden,
     "embedding.long_position", "position_emb_lookup_long",
     "embeddings/position_embeddings", "embedding.global_position"},
    {kTable, kPositionTable, HasPositions, Positions, Hidden,
     "embedding.global_position", "position_emb_lookup_global",
     "embeddings/position_embeddings", ""},
    {kNorm, kLayer, HasLong, NoSize, Hidden, "embedding.long_norm",
     "long_emb_layer_norm", "embeddings/LayerNorm", "embedding.global_norm"},
    {kNorm, kLayer, Always, NoSize, Hidden, "embedding.global_norm",
     "global_emb_layer_norm", "embeddings/LayerNorm", ""},
};

// Prefixes of the names of all parts of layers.
struct Prefixes {
  const char* ours = "";
  const char* official_etc = "";
  const char* bert = "";
};
constexpr Prefixes kLayerPrefixes = {
    "layers.N.", "global_local_transformer_layers/", "encoder/layer_N/"};

#define ETC_ATTENTION_PART "fused_att_layer_N/fused_global_local_att/"
constexpr Part kLayerParts[] = {
    {kDense, kLayer, Always, Hidden, AllHeads, "attention.long_query",
     ETC_ATTENTION_PART "long_query_projection/linear", "attention/self/query",
     ""},
    {kDense, kLayer, Always, Hidden, AllHeads, "attention.l2l_key",
     ETC_ATTENTION_PART "l2l_key_projection/linear", "attention/self/key", ""},
    {kDense, kLayer, KeysApart, Hidden, AllHeads, "attention.l2g_key",
     ETC_ATTENTION_PART "l2g_key_projection/linear", "attention/self/key",
     "attention.l2l_key"},
    {kDense, kLayer, Always, Hidden, AllHeads, "attention.l2l_value",
     ETC_ATTENTION_PART "l2l_value_projection/linear", "attention/self/value",
     ""},
    {kDense, kLayer, KeysApart, Hidden, AllHeads, "attention.l2g_value",
     ETC_ATTENTION_PART "l2g_value_projection/linear", "attention/self/value",
     "attention.l2l_value"},
    {kDense, kLayer, StreamsApart, Hidden, AllHeads, "attention.global_query",
     ETC_ATTENTION_PART "global_query_projection/linear",
     "attention/self/query", "attention.long_query"},
    {kDense, kLayer, StreamsApart, Hidden, AllHeads, "attention.g2g_key",
     ETC_ATTENTION_PART "g2g_key_projection/linear", "attention/self/key",
     "attention.l2l_key"},
    {kDense, kLayer, KeysApart, Hidden, AllHeads, "attention.g2l_key",
     ETC_ATTENTION_PART "g2l_key_projection/linear", "attention/self/key",
     "attention.g2g_key,attention.l2l_key"},
    {kDense, kLayer, StreamsApart, Hidden, AllHeads, "attention.g2g_value",
     ETC_ATTENTION_PART "g2g_value_projection/linear", "attention/self/value",
     "attention.l2l_value"},
    {kDense, kLayer, KeysApart, Hidden, AllHeads, "attention.g2l_value",
     ETC_ATTENTION_PART "g2l_value_projection/linear", "attention/self/value",
     "attention.g2g_value,attention.l2l_value"},
    {kDense, kLayer, Always, AllHeads, Hidden, "attention.long_output",
     ETC_ATTENTION_PART "long_output_projection", "attention/output/dense", ""},
    {kDense, kLayer, OutputsApart, AllHeads, Hidden, "attention.global_output",
     ETC_ATTENTION_PART "global_output_projection", "attention/output/dense",
     "attention.long_output"},
    {kRelative, kRelativePosition, HasLongIds, NoSize, NoSize,
     "attention.long_relative",
     ETC_ATTENTION_PART "long_qkv_attention/qkv_relative_attention", nullptr,
     ""},
    {kRelative, kRelativePosition, HasIds, NoSize, NoSize,
     "attention.global_relative", ETC_ATTENTION_PART "global_qkv_attention",
     nullptr, ""},
    {kPerHead, kGate, HasGates, NoSize, NoSize, "attention.g2g_gate", nullptr,
     nullptr, ""},
    {kPerHead, kGate, HasLongGates, NoSize, NoSize, "attention.g2l_gate",
     nullptr, nullptr, "attention.g2g_gate"},
    {kPerHead, kGate, HasLongGates, NoSize, NoSize, "attention.l2g_gate",
     nullptr, nullptr, "attention.g2g_gate"},
    {kPerHead, kGate, HasLongGates, NoSize, NoSize, "attention.l2l_gate",
     nullptr, nullptr, "attention.g2g_gate"},
    {kNorm, kResidualConnection, WithNorm<HasLong>, NoSize, Hidden,
     "long_attention_norm", "fused_att_layer_N/layer_norm_0",
     "attention/output/LayerNorm", "global_attention_norm"},
    {kNorm, kResidualConnection, WithNorm<Always>, NoSize, Hidden,
     "global_attention_norm", "fused_att_layer_N/layer_norm_1",
     "attention/output/LayerNorm", ""},
    {kAlpha, kResidualConnection, WithAlpha<HasLong>, NoSize, Hidden,
     "long_attention_alpha", nullptr, nullptr, "global_attention_alpha"},
    {kOmega, kResidualConnection, WithOmega<HasLong>, NoSize, Hidden,
     "long_attention_omega", nullptr, nullptr, "global_attention_omega"},
    {kAlpha, kResidualConnection, WithAlpha<Always>, NoSize, Hidden,
     "global_attention_alpha", nullptr, nullptr, ""},
    {kOmega, kResidualConnection, WithOmega<Always>, NoSize, Hidden,
     "global_attention_omega", nullptr, nullptr, ""},
    {kDense, kLayer, OneInner, Hidden, Intermediate,
     "feed_forward.intermediate", "feed_forward_layer_N/dense_layers/layer_0",
     "intermediate/dense", ""},
    {kDense, kLayer, OneInner, Intermediate, Hidden, "feed_forward.output",
     "feed_forward_layer_N/dense_layers/layer_1", "output/dense", ""},
    {kNorm, kResidualConnection, WithNorm<OneInner>, NoSize, Hidden,
     "feed_forward.norm", "feed_forward_layer_N/layer_norm", "output/LayerNorm",
     ""},
    {kDense, kLayer, TwoInner, Hidden, Intermediate,
     "long_feed_forward.intermediate",
     "long_feed_forward_layer_N/dense_layers/layer_0", "intermediate/dense",
     "feed_forward.intermediate"},
    {kDense, kLayer, TwoInner, Intermediate, Hidden, "long_feed_forward.output",
     "long_feed_forward_layer_N/dense_layers/layer_1", "output/dense",
     "feed_forward.output"},
    {kNorm, kResidualConnection, WithNorm<TwoInner>, NoSize, Hidden,
     "long_feed_forward.norm", "long_feed_forward_layer_N/layer_norm",
     "output/LayerNorm", "feed_forward.norm"},
    {kDense, kLayer, TwoInner, Hidden, Intermediate,
     "global_feed_forward.intermediate",
     "global_feed_forward_layer_N/dense_layers/layer_0", "intermediate/dense",
     "feed_forward.intermediate"},
    {kDense, kLayer, TwoInner, Intermediate, Hidden,
     "global_feed_forward.output",
     "global_feed_forward_layer_N/dense_layers/layer_1", "output/dense",
     "feed_forward.output"},
    {kNorm, kResidualConnection, WithNorm<TwoInner>, NoSize, Hidden,
     "global_feed_forward.norm", "global_feed_forward_layer_N/layer_norm",
     "output/LayerNorm", "feed_forward.norm"},
    {kAlpha, kResidualConnection, WithAlpha<OneInner>, NoSize, Hidden,
     "feed_forward.alpha", nullptr, nullptr, ""},
    {kOmega, kResidualConnection, WithOmega<OneInner>, NoSize, Hidden,
     "feed_forward.omega", nullptr, nullptr, ""},
    {kAlpha, kResidualConnection, WithAlpha<TwoInner>, NoSize, Hidden,
     "long_feed_forward.alpha", nullptr, nullptr, "feed_forward.alpha"},
    {kOmega, kResidualConnection, WithOmega<TwoInner>, NoSize, Hidden,
     "long_feed_forward.omega", nullptr, nullptr, "feed_forward.omega"},
    {kAlpha, kResidualConnection, WithAlpha<TwoInner>, NoSize, Hidden,
     "global_feed_forward.alpha", nullptr, nullptr, "feed_forward.alpha"},
    {kOmega, kResidualConnection, WithOmega<TwoInner>, NoSize, Hidden,
     "global_feed_forward.omega", nullptr, nullptr, "feed_forward.omega"},
};
#undef ETC_ATTENTION_PART

// Behind the last layer.
constexpr Part kFinalParts[] = {
    {kNorm, kLayer, HasLongFinalNorm, NoSize, Hidden, "long_final_norm",
     nullptr, nullptr, "global_final_norm"},
    {kNorm, kLayer, HasFinalNorm, NoSize, Hidden, "global_final_norm", nullptr,
     nullptr, ""},
};

// The last components of a part's names, in our order, and the shapes. Google's
// tables have none.
struct Leaf {
  const char* ours;
  const char* official_etc;
  const char* google_bert;
  const char* hugging_face;
  std::vector<int64_t> shape;
};

std::vector<Leaf> LeavesOf(const Part& part, const EtcConfig& config) {
  const int64_t in = part.in(config);
  const int64_t out = part.out(config);
  const int64_t ids = config.relative_vocab_size.value_or(0);
  const int64_t heads = config.num_attention_heads;
  const int64_t size = config.head_size();
  switch (part.kind) {
    case PartKind::kTable:  // rows are never transposed
      return {{".weight", "/embedding_table", "", ".weight", {in, out}}};
    case PartKind::kDense:
      return {{".weight", "/kernel", "/kernel", ".weight", {out, in}},
              {".bias", "/bias", "/bias", ".bias", {out}}};
    case PartKind::kNorm:
      return {{".weight", "/gamma", "/gamma", ".weight", {out}},
              {".bias", "/beta", "/beta", ".bias", {out}}};
    case PartKind::kRelative:
      return {{".embedding", "/relative_emb_table", "", "", {ids, heads, size}},
              {".bias", "/relative_bias_table", "", "", {ids, heads}}};
    case PartKind::kPerHead:
      return {{"", "", "", "", {heads}}};
    case PartKind::kAlpha:
      return {{"", "", "", "", {1}}};
    case PartKind::kOmega:
      return {{"", "", "", "", {out}}};
  }
  return {};
}

void AddParameters(const Part& part, const Prefixes& prefixes, int64_t layer,
                   const EtcConfig& config,
                   std::vector<EncoderParameter>* all) {
  // Nothing is carried to the first layer.
  if (!part.exists(config) || (part.role == kGate && layer == 0)) {
    return;
  }
  const std::string number = absl::StrCat(layer);
  const auto numbered = [&](absl::string_view name) {
    return absl::StrReplaceAll(name,
                               {{"layer_N", absl::StrCat("layer_", number)},
                                {"layers.N", absl::StrCat("layers.", number)}});
  };
  for (const Leaf& leaf : LeavesOf(part, config)) {
    EncoderParameter parameter{.shape = leaf.shape, .role = part.role};
    parameter.name =
        numbered(absl::StrCat(prefixes.ours, part.ours, leaf.ours));
    parameter.is_kernel =
        part.kind == PartKind::kDense && leaf.shape.size() == 2;
    if (part.official_etc != nullptr) {
      parameter.official_etc = numbered(absl::StrCat(
          prefixes.official_etc, part.official_etc, leaf.official_etc));
    }
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
    AddParameters(part, {}, 0, config, &all);
  }
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    for (const Part& part : kLayerParts) {
      AddParameters(part, kLayerPrefixes, layer, config, &all);
    }
  }
  for (const Part& part : kFinalParts) {
    AddParameters(part, {}, 0, config, &all);
  }
  return all;
}

std::vector<std::string> GateNames(const EtcConfig& config) {
  EtcConfig with_gates = config;
  with_gates.residual_attention = "gate";
  std::vector<std::string> names;
  for (EncoderParameter& parameter : EncoderParameters(with_gates)) {
    if (parameter.role == kGate) {
      names.push_back(std::move(parameter.name));
    }
  }
  return names;
}

bool IsGate(absl::string_view name) {
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  return last == "gate" || absl::EndsWith(last, "_gate");
}

}  // namespace etc
