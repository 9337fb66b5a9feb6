#include "etc/encoder_decoder/fairseq_checkpoint.h"

#include <torch/types.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/encoder_decoder/fairseq_names.h"
#include "etc/weights/pytorch_writer.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

constexpr char kSourceTable[] = "encoder.embed_tokens.weight";
constexpr char kTargetTable[] = "decoder.embed_tokens.weight";
// The output table of later versions, which may be the decoder's.
constexpr char kOutputTable[] = "decoder.output_projection.weight";
// Options of ours among those of fairseq, named as in EncoderDecoderConfig.
constexpr char kResidualDecay[] = "residual_decay";
// The epsilon of every LayerNorm of fairseq.
constexpr double kEpsilon = 1e-5;

bool Has(const TensorReader& reader, const std::string& name) {
  return reader.Find(name).ok();
}

// The options of the training: an object, empty if the file has none.
Json OptionsOf(const TensorReader& reader) {
  for (const char* const entry : {"args", "cfg"}) {
    const auto text = reader.metadata().find(entry);
    if (text == reader.metadata().end()) {
      continue;
    }
    Json options = ParseJson(text->second, reader.path()).value_or(Json());
    if (options.is_object() && options.contains("model") &&
        options["model"].is_object()) {
      options = Json(options["model"]);
    }
    if (options.is_object() && !options.empty()) {
      return options;
    }
  }
  return Json::object();
}

// Reads an option if it is there and not null, which stands for none.
template <typename T>
void TakeOption(const char* name, JsonObjectReader* options, T* field) {
  if (options->Given(name) != nullptr) {
    options->Optional(name, field);
  }
}

// Refuses the option `name` where it is there and is not `expected`, which
// holds because of `reason`.
void ExpectOption(const char* name, bool expected, const char* reason,
                  JsonObjectReader* options) {
  bool value = expected;
  TakeOption(name, options, &value);
  if (value != expected) {
    options->Fail(name, absl::StrCat("should be ", expected ? "true" : "false",
                                     ", but is ", value ? "true" : "false",
                                     ": ", reason));
  }
}

int64_t CountLayers(const TensorReader& reader, const std::string& stack) {
  int64_t layers = 0;
  while (Has(reader, absl::StrCat(stack, ".layers.", layers, ".fc1.weight"))) {
    ++layers;
  }
  return layers;
}

std::string SublayerOf(const TensorReader& reader, const std::string& stack) {
  return Has(reader, stack + ".layer_norm.weight")          ? "pre_norm"
         : Has(reader, stack + ".layers.0.fc_ratio_change") ? "admin"
                                                            : "post_norm";
}

// The value of share_embeddings by which tables are equal.
absl::StatusOr<std::string> SharingOf(const TensorReader& reader) {
  if (Has(reader, "decoder.embed_out")) {
    return "none";
  }
  ETC_ASSIGN_OR_RETURN(const torch::Tensor source, reader.Read(kSourceTable));
  ETC_ASSIGN_OR_RETURN(const torch::Tensor target, reader.Read(kTargetTable));
  if (Has(reader, kOutputTable)) {
    ETC_ASSIGN_OR_RETURN(const torch::Tensor output, reader.Read(kOutputTable));
    if (!output.equal(target)) {
      return "none";
    }
  }
  return source.equal(target) ? "all" : "decoder";
}

// Sets what the tensors say.
absl::Status TakeSizes(const TensorReader& reader,
                       EncoderDecoderConfig* config) {
  for (const char* const stack : {"encoder", "decoder"}) {
    if (Has(reader, absl::StrCat(stack, ".embed_positions.weight"))) {
      return InvalidArgument(reader.path(), ": ", stack,
                             " should have sinusoidal positions, but has "
                             "learned ones");
    }
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> source,
                       reader.Shape(kSourceTable));
  ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> target,
                       reader.Shape(kTargetTable));
  if (source != target || source.size() != 2) {
    return InvalidArgument(reader.path(), ": ", kSourceTable, " and ",
                           kTargetTable,
                           " should be matrices of one shape: a vocabulary "
                           "and a width of both sides");
  }
  config->vocab_size = source[0];
  config->hidden_size = source[1];
  config->num_encoder_layers = CountLayers(reader, "encoder");
  config->num_decoder_layers = CountLayers(reader, "decoder");
  ETC_ASSIGN_OR_RETURN(const std::vector<int64_t> inner,
                       reader.Shape("encoder.layers.0.fc1.weight"));
  config->intermediate_size = inner.empty() ? 0 : inner[0];
  config->encoder_sublayer = SublayerOf(reader, "encoder");
  config->decoder_sublayer = SublayerOf(reader, "decoder");
  ETC_ASSIGN_OR_RETURN(config->share_embeddings, SharingOf(reader));
  return absl::OkStatus();
}

// Refuses options that contradict the tensors, or change what a model computes.
void CheckOptions(const EncoderDecoderConfig& config,
                  JsonObjectReader* options) {
  const auto expect_order = [&](const char* name, const std::string& sublayer) {
    const bool is_pre_norm = sublayer == "pre_norm";
    ExpectOption(name, is_pre_norm,
                 is_pre_norm ? "the stack has a LayerNorm behind its last layer"
                             : "the stack has no LayerNorm behind its last "
                               "layer (no_decoder_final_norm is not supported)",
                 options);
  };
  expect_order("encoder_normalize_before", config.encoder_sublayer);
  expect_order("decoder_normalize_before", config.decoder_sublayer);
  for (const char* const name :
       {"no_token_positional_embeddings", "no_scale_embedding",
        "cross_self_attention", "layer_wise_attention"}) {
    ExpectOption(name, false, "no model of ours computes that", options);
  }
}

// Sets what the options say. `heads` as of FairseqConfig.
absl::Status TakeOptions(const TensorReader& reader, int64_t heads,
                         EncoderDecoderConfig* config) {
  const Json options = OptionsOf(reader);
  JsonObjectReader fields(options, absl::StrCat(reader.path(), ": options"));
  const auto take = [&fields](const char* name, auto* field) {
    TakeOption(name, &fields, field);
  };
  int64_t encoder_heads = heads;
  int64_t decoder_heads = heads;
  take("encoder_attention_heads", &encoder_heads);
  take("decoder_attention_heads", &decoder_heads);
  take("dropout", &config->hidden_dropout_prob);
  take("attention_dropout", &config->attention_probs_dropout_prob);
  // Names of fairseq before and since 2019.
  take("relu_dropout", &config->activation_dropout_prob);
  take("activation_dropout", &config->activation_dropout_prob);
  take("max_source_positions", &config->max_source_positions);
  take("max_target_positions", &config->max_target_positions);
  take("activation_fn", &config->hidden_act);
  if (config->hidden_act == "gelu") {
    config->hidden_act = "gelu_erf";
  } else if (config->hidden_act == "gelu_accurate") {
    config->hidden_act = "gelu";
  }
  take("encoder_residual_attention", &config->encoder_residual_attention);
  take("decoder_residual_attention", &config->decoder_residual_attention);
  take("cross_residual_attention", &config->cross_residual_attention);
  take(kResidualDecay, &config->residual_decay);
  CheckOptions(*config, &fields);
  ETC_RETURN_IF_ERROR(fields.status());
  if (encoder_heads < 1 || encoder_heads != decoder_heads) {
    return InvalidArgument(
        reader.path(),
        encoder_heads != decoder_heads
            ? absl::StrCat(": encoder and decoder should have as many heads, "
                           "but have ",
                           encoder_heads, " and ", decoder_heads)
            : ": should have the number of attention heads among its options "
              "(args or cfg), but has not: it must be given");
  }
  if (heads > 0 && heads != encoder_heads) {
    return InvalidArgument(reader.path(), ": num_attention_heads should be ",
                           encoder_heads, ", as its options say, but is ",
                           heads);
  }
  config->num_attention_heads = encoder_heads;
  return absl::OkStatus();
}

// Returns fairseq's name of an activation, where "gelu" is the exact form.
std::string FairseqActivation(const std::string& hidden_act) {
  return hidden_act == "gelu"       ? "gelu_accurate"
         : hidden_act == "gelu_erf" ? "gelu"
                                    : hidden_act;
}

// The options of a model as fairseq's argument parser would give them.
absl::StatusOr<Json> FairseqOptions(const EncoderDecoderConfig& config) {
  if (config.layer_norm_epsilon != kEpsilon) {
    return InvalidArgument("fairseq has a layer_norm_epsilon of ", kEpsilon,
                           " only, but this model has ",
                           config.layer_norm_epsilon);
  }
  const bool is_admin = config.encoder_sublayer == "admin";
  if (is_admin != (config.decoder_sublayer == "admin")) {
    return InvalidArgument(
        "fairseq has ADMIN's omegas in both stacks or in none, but this model "
        "has sublayers ",
        config.encoder_sublayer, " and ", config.decoder_sublayer);
  }
  Json options = {
      {"arch", "transformer_wmt_en_de"},
      {"task", "translation"},
      {"criterion", "label_smoothed_cross_entropy"},
      {"init_type", is_admin ? "adaptive" : "default"},
      {"activation_fn", FairseqActivation(config.hidden_act)},
      {"dropout", config.hidden_dropout_prob},
      {"attention_dropout", config.attention_probs_dropout_prob},
      {"activation_dropout", config.activation_dropout_prob},
      {"relu_dropout", config.activation_dropout_prob},
      {"max_source_positions", config.max_source_positions},
      {"max_target_positions", config.max_target_positions},
      {"share_all_embeddings", config.share_embeddings == "all"},
      {"share_decoder_input_output_embed", config.share_embeddings != "none"},
      {"adaptive_softmax_cutoff", nullptr},
      {"no_token_positional_embeddings", false},
      {"encoder_residual_attention", config.encoder_residual_attention},
      {"decoder_residual_attention", config.decoder_residual_attention},
      {"cross_residual_attention", config.cross_residual_attention},
      {kResidualDecay, config.residual_decay},
      {"decoder_input_dim", config.hidden_size},
      {"decoder_output_dim", config.hidden_size}};
  for (const std::string side : {"encoder", "decoder"}) {
    const bool is_encoder = side == "encoder";
    options[side + "_embed_path"] = nullptr;
    options[side + "_embed_dim"] = config.hidden_size;
    options[side + "_ffn_embed_dim"] = config.intermediate_size;
    options[side + "_attention_heads"] = config.num_attention_heads;
    options[side + "_layers"] =
        is_encoder ? config.num_encoder_layers : config.num_decoder_layers;
    options[side + "_normalize_before"] =
        (is_encoder ? config.encoder_sublayer : config.decoder_sublayer) ==
        "pre_norm";
    options[side + "_learned_pos"] = false;
  }
  return options;
}

}  // namespace

bool IsFairseqTranslation(const TensorReader& reader) {
  return Has(reader, kSourceTable) && Has(reader, kTargetTable) &&
         Has(reader, "decoder.layers.0.encoder_attn.out_proj.weight");
}

bool HasFairseqOptions(const TensorReader& reader) {
  return !OptionsOf(reader).empty();
}

absl::StatusOr<EncoderDecoderConfig> FairseqConfig(const TensorReader& reader,
                                                   int64_t heads) {
  EncoderDecoderConfig config;
  ETC_RETURN_IF_ERROR(TakeSizes(reader, &config));
  ETC_RETURN_IF_ERROR(TakeOptions(reader, heads, &config));
  ETC_RETURN_IF_ERROR(CheckEncoderDecoderConfig(config, reader.path()));
  return config;
}

absl::StatusOr<EncoderDecoder> LoadFairseqCheckpoint(const std::string& path,
                                                     int64_t heads) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader, TensorReader::Open(path));
  ETC_ASSIGN_OR_RETURN(const EncoderDecoderConfig config,
                       FairseqConfig(reader, heads));
  EncoderDecoder model(config);
  ETC_RETURN_IF_ERROR(LoadFairseqTensors(reader, model));
  model->eval();
  return model;
}

absl::Status CheckFairseqExpressible(const EncoderDecoder& model) {
  ETC_RETURN_IF_ERROR(FairseqOptions(model->config()).status());
  return FairseqTensors(model).status();
}

absl::Status WriteFairseqCheckpoint(const std::string& path,
                                    const EncoderDecoder& model) {
  ETC_ASSIGN_OR_RETURN(const Json options, FairseqOptions(model->config()));
  ETC_ASSIGN_OR_RETURN(NamedTensors tensors, FairseqTensors(model));
  // Buffers that fairseq expects: the format of its modules, and a tensor whose
  // device the positions are computed on.
  for (const std::string stack : {"encoder", "decoder"}) {
    tensors[stack + ".version"] = torch::full({1}, 3.0F);
    tensors[stack + ".embed_positions._float_tensor"] = torch::zeros({1});
  }
  Json entries = {
      {"args", options},
      {"optimizer_history", Json::array()},
      {"extra_state",
       {{"train_iterator", {{"epoch", 1}, {"iterations_in_epoch", 0}}}}}};
  entries["optimizer_history"].push_back(
      {{"criterion_name", "LabelSmoothedCrossEntropyCriterion"},
       {"optimizer_name", "FairseqAdam"},
       {"lr_scheduler_state", Json::object()},
       {"num_updates", 0}});
  return WritePytorchFile(path, entries, {"args"}, "model", tensors);
}

}  // namespace etc
