#include "etc/encoder_decoder/fairseq_names.h"

#include <torch/utils.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Names that differ between versions of fairseq.
struct FairseqLayout {
  // Three tensors, q_proj, k_proj and v_proj, in the place of one, in_proj.
  bool splits_projections = false;
  // decoder.output_projection in the place of decoder.embed_out, there also if
  // it is one with the decoder's table.
  bool has_output_projection = false;
};

FairseqLayout LayoutOf(const TensorReader& reader) {
  return {.splits_projections =
              reader.Find("encoder.layers.0.self_attn.q_proj.weight").ok(),
          .has_output_projection =
              reader.Find("decoder.output_projection.weight").ok()};
}

// A tensor of fairseq's, and ours that it is made of: one, or three of which
// the rows stand one behind the other.
struct FairseqParameter {
  std::string name;
  std::vector<std::string> ours;
};

// Collects the parameters of a model.
class FairseqParameters {
 public:
  FairseqParameters(const EncoderDecoderConfig& config,
                    const FairseqLayout& layout)
      : config_(config), layout_(layout) {
    AddTables();
    for (int64_t i = 0; i < config.num_encoder_layers; ++i) {
      AddEncoderLayer(i);
    }
    for (int64_t i = 0; i < config.num_decoder_layers; ++i) {
      AddDecoderLayer(i);
    }
    if (config.encoder_sublayer == "pre_norm") {
      Add("encoder.layer_norm", "encoder.final_norm");
    }
    if (config.decoder_sublayer == "pre_norm") {
      Add("decoder.layer_norm", "decoder.final_norm");
    }
  }

  const std::vector<FairseqParameter>& all() const { return all_; }

 private:
  void AddTables() {
    const std::string source = "embedding.weight";
    const std::string target =
        config_.share_embeddings == "all" ? source : "decoder.embedding.weight";
    const bool has_own_output = config_.share_embeddings == "none";
    all_.push_back({"encoder.embed_tokens.weight", {source}});
    all_.push_back({"decoder.embed_tokens.weight", {target}});
    if (layout_.has_output_projection) {
      all_.push_back({"decoder.output_projection.weight",
                      {has_own_output ? "decoder.output" : target}});
    } else if (has_own_output) {
      all_.push_back({"decoder.embed_out", {"decoder.output"}});
    }
  }

  // Weight and bias.
  void Add(const std::string& name, const std::string& ours) {
    for (const char* const part : {".weight", ".bias"}) {
      all_.push_back({name + part, {ours + part}});
    }
  }

  // One residual block around attention.
  void AddAttention(const std::string& name, const std::string& ours) {
    if (layout_.splits_projections) {
      Add(name + ".q_proj", ours + ".query");
      Add(name + ".k_proj", ours + ".key");
      Add(name + ".v_proj", ours + ".value");
    } else {
      for (const char* const part : {"weight", "bias"}) {
        all_.push_back({absl::StrCat(name, ".in_proj_", part),
                        {absl::StrCat(ours, ".query.", part),
                         absl::StrCat(ours, ".key.", part),
                         absl::StrCat(ours, ".value.", part)}});
      }
    }
    Add(name + ".out_proj", ours + ".output");
    Add(name + "_layer_norm", ours + "_norm");
  }

  void AddFeedForward(const std::string& name, const std::string& ours) {
    Add(name + "fc1", ours + "feed_forward.intermediate");
    Add(name + "fc2", ours + "feed_forward.output");
    Add(name + "final_layer_norm", ours + "feed_forward.norm");
  }

  void AddOmega(const std::string& name, const std::string& ours) {
    all_.push_back({name, {ours}});
  }

  void AddEncoderLayer(int64_t layer) {
    const std::string prefix = absl::StrCat("encoder.layers.", layer, ".");
    AddAttention(prefix + "self_attn", prefix + "self_attention");
    AddFeedForward(prefix, prefix);
    if (config_.encoder_sublayer == "admin") {
      AddOmega(prefix + "attention_ratio_change",
               prefix + "self_attention_omega");
      AddOmega(prefix + "fc_ratio_change", prefix + "feed_forward.omega");
    }
  }

  void AddDecoderLayer(int64_t layer) {
    const std::string prefix = absl::StrCat("decoder.layers.", layer, ".");
    AddAttention(prefix + "self_attn", prefix + "self_attention");
    AddAttention(prefix + "encoder_attn", prefix + "cross_attention");
    AddFeedForward(prefix, prefix);
    if (config_.decoder_sublayer == "admin") {
      AddOmega(prefix + "self_ratio_change", prefix + "self_attention_omega");
      AddOmega(prefix + "encoder_ratio_change",
               prefix + "cross_attention_omega");
      AddOmega(prefix + "fc_ratio_change", prefix + "feed_forward.omega");
    }
  }

  const EncoderDecoderConfig& config_;
  const FairseqLayout layout_;
  std::vector<FairseqParameter> all_;
};

// Checks that tensors which are one tensor of ours are equal.
absl::Status CheckSharedTables(const FairseqParameters& fairseq,
                               const NamedTensors& read,
                               const std::string& path) {
  std::map<std::string, std::string> names;  // fairseq's first of each of ours
  for (const FairseqParameter& parameter : fairseq.all()) {
    const auto [first, is_new] =
        names.emplace(parameter.ours[0], parameter.name);
    if (!is_new && !read.at(first->second).equal(read.at(parameter.name))) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", first->second, " and ", parameter.name,
          " should be equal, as share_embeddings says, but differ"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHasFairseqNames(const EncoderDecoderConfig& config) {
  if (config.encoder_sublayer == "rezero" ||
      config.decoder_sublayer == "rezero") {
    return absl::InvalidArgumentError(
        "fairseq has no names for models with sublayer \"rezero\"");
  }
  return absl::OkStatus();
}

// Tensors that say nothing.
bool HasNoMeaning(const std::string& name) {
  return absl::EndsWith(name, ".version") ||
         absl::EndsWith(name, "._float_tensor");
}

}  // namespace

absl::StatusOr<NamedTensors> FairseqTensors(const EncoderDecoder& model) {
  const EncoderDecoderConfig& config = model->config();
  ETC_RETURN_IF_ERROR(CheckHasFairseqNames(config));
  const auto parameters = model->named_parameters();
  for (const auto& parameter : parameters) {
    if (absl::EndsWith(parameter.key(), ".gate")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "fairseq has no gates, but this model has ", parameter.key()));
    }
  }
  const torch::NoGradGuard no_grad;
  const FairseqParameters fairseq(config, FairseqLayout());
  NamedTensors tensors;
  for (const FairseqParameter& parameter : fairseq.all()) {
    std::vector<torch::Tensor> parts;
    for (const std::string& name : parameter.ours) {
      parts.push_back(parameters[name].detach());
    }
    tensors.emplace(parameter.name,
                    parts.size() == 1 ? parts[0] : torch::cat(parts));
  }
  return tensors;
}

absl::Status LoadFairseqTensors(const TensorReader& reader,
                                const EncoderDecoder& model) {
  const EncoderDecoderConfig& config = model->config();
  ETC_RETURN_IF_ERROR(CheckHasFairseqNames(config));
  const torch::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  const FairseqParameters fairseq(config, LayoutOf(reader));
  NamedTensors read;
  for (const FairseqParameter& parameter : fairseq.all()) {
    const torch::Tensor& part = parameters[parameter.ours[0]];
    std::vector<int64_t> shape = part.sizes().vec();
    shape[0] *= static_cast<int64_t>(parameter.ours.size());
    read.emplace(parameter.name,
                 torch::empty(shape, part.options().device(torch::kCPU)));
  }
  ETC_ASSIGN_OR_RETURN(const LoadReport report,
                       LoadTensors(reader, read, NameMatch::kDestination));
  for (const std::string& name : report.unexpected) {
    if (!HasNoMeaning(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.path(), ": ", name,
                       " should not be there: the model, as it is configured, "
                       "has no such parameter"));
    }
  }
  ETC_RETURN_IF_ERROR(CheckSharedTables(fairseq, read, reader.path()));
  for (const FairseqParameter& parameter : fairseq.all()) {
    const auto count = static_cast<int64_t>(parameter.ours.size());
    const std::vector<torch::Tensor> parts =
        read.at(parameter.name).chunk(count);
    for (size_t i = 0; i < parameter.ours.size(); ++i) {
      torch::Tensor(parameters[parameter.ours[i]]).copy_(parts[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
