#include "etc/encoder_decoder/admin_omegas.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "etc/nn/residual_connection.h"

namespace etc {
namespace {

ProfiledStream StreamToProfile(const torch::Tensor& ids,
                               ProfiledPositions positions) {
  ProfiledStream stream = {.tokens = ids.numel()};
  if (positions == ProfiledPositions::kTokens) {
    const torch::Tensor rows = ids.flatten().ne(kPaddingId).nonzero().flatten();
    if (rows.numel() < ids.numel()) {
      stream.rows = rows;
      stream.tokens = rows.numel();
    }
  }
  return stream;
}

std::vector<double> ValuesOf(const std::vector<torch::Tensor>& omegas) {
  std::vector<double> values;
  for (const torch::Tensor& omega : omegas) {
    values.push_back(omega[0].item<double>());
  }
  return values;
}

void SetStack(const std::vector<torch::Tensor>& omegas, const char* stack,
              const std::vector<double>& values) {
  TORCH_CHECK(values.size() == omegas.size(), "there should be ", omegas.size(),
              " omegas of the ", stack, ", but there are ", values.size());
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < omegas.size(); ++i) {
    torch::Tensor(omegas[i]).fill_(values[i]);
  }
}

absl::Status LineError(const std::string& path, size_t line,
                       absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", line + 1, ": should be ", expected, ", but is ", found));
}

// Line `line` of the file, which should be that of block `index`.
absl::StatusOr<double> ValueInLine(const std::string& path, size_t line,
                                   absl::string_view text, int64_t index) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  int64_t found = 0;
  double value = 0;
  if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &found) ||
      !absl::SimpleAtod(fields[1], &value)) {
    return LineError(path, line, "an index and a value",
                     absl::StrCat("\"", text.substr(0, 80), "\""));
  }
  if (found != index) {
    return LineError(path, line, absl::StrCat("that of block ", index),
                     absl::StrCat("that of ", found));
  }
  if (!(value > 0) || !std::isfinite(value)) {
    return LineError(path, line, "a value above 0", fields[1]);
  }
  return value;
}

// A block of a stack with sublayer "admin".
struct AdminBlock {
  std::string omega;
  std::string norm;                  // behind the block
  std::vector<std::string> readers;  // matrices of the block's input
};

void AddAttentionBlock(const std::string& layer, const std::string& attention,
                       bool reads_keys, std::vector<AdminBlock>* blocks) {
  const std::string name = absl::StrCat(layer, attention);
  AdminBlock block = {.omega = name + "_omega",
                      .norm = name + "_norm",
                      .readers = {name + ".query.weight"}};
  if (reads_keys) {
    block.readers.push_back(name + ".key.weight");
    block.readers.push_back(name + ".value.weight");
  }
  blocks->push_back(std::move(block));
}

// The blocks of `stack`, "encoder" or "decoder", bottom to top.
std::vector<AdminBlock> BlocksOfStack(const std::string& stack, int64_t layers,
                                      bool has_cross_attention) {
  std::vector<AdminBlock> blocks;
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat(stack, ".layers.", i, ".");
    AddAttentionBlock(layer, "self_attention", /*reads_keys=*/true, &blocks);
    if (has_cross_attention) {
      AddAttentionBlock(layer, "cross_attention", /*reads_keys=*/false,
                        &blocks);
    }
    blocks.push_back({.omega = layer + "feed_forward.omega",
                      .norm = layer + "feed_forward.norm",
                      .readers = {layer + "feed_forward.intermediate.weight"}});
  }
  return blocks;
}

// Moves the omegas of a stack into the parameters `of`.
absl::Status FoldStack(const std::vector<AdminBlock>& blocks,
                       torch::OrderedDict<std::string, torch::Tensor>& of) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const torch::Tensor& omega = of[blocks[i].omega];
    if (i == 0 ? omega.ne(1).any().item<bool>()
               : omega.eq(0).any().item<bool>()) {
      return absl::InvalidArgumentError(absl::StrCat(
          blocks[i].omega, i == 0 ? " should be 1 throughout, since its input "
                                    "is no LayerNorm's"
                                  : " should have no element that is 0"));
    }
    if (i == 0) {
      continue;
    }
    for (const char* const part : {".weight", ".bias"}) {
      of[blocks[i - 1].norm + part].mul_(omega);
    }
    for (const std::string& reader : blocks[i].readers) {
      of[reader].div_(omega);
    }
  }
  return absl::OkStatus();
}

}  // namespace

double InitialAdminOmega(int64_t blocks) {
  const double count = static_cast<double>(blocks) + 1.0;
  return std::sqrt(count / std::log(count) - 1.0);
}

void FillOmegas(const std::vector<torch::Tensor>& omegas) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor omega : omegas) {
    omega.fill_(InitialAdminOmega(static_cast<int64_t>(omegas.size())));
  }
}

AdminBlocks AdminBlocksOf(const EncoderDecoderConfig& config) {
  return {.encoder = config.encoder_sublayer == "admin"
                         ? 2 * config.num_encoder_layers
                         : 0,
          .decoder = config.decoder_sublayer == "admin"
                         ? 3 * config.num_decoder_layers
                         : 0};
}

AdminOmegas ProfileAdmin(EncoderDecoder model, const torch::Tensor& source_ids,
                         const torch::Tensor& decoder_ids,
                         ProfiledPositions positions) {
  const AdminBlocks blocks = AdminBlocksOf(model->config());
  TORCH_CHECK(blocks.encoder + blocks.decoder > 0,
              "omegas are those of sublayer admin, but the sublayers are ",
              model->config().encoder_sublayer, " and ",
              model->config().decoder_sublayer);
  const torch::NoGradGuard no_grad;
  ProfiledStream source = StreamToProfile(source_ids, positions);
  ProfiledStream target = StreamToProfile(decoder_ids, positions);
  const DecoderMemory memory = model->encoder()->forward(
      source_ids, blocks.encoder > 0 ? &source : nullptr);
  model->decoder()->forward(memory, decoder_ids,
                            blocks.decoder > 0 ? &target : nullptr);
  return {.encoder = ValuesOf(model->encoder()->Omegas()),
          .decoder = ValuesOf(model->decoder()->Omegas())};
}

void SetAdminOmegas(EncoderDecoder model, const AdminOmegas& omegas) {
  SetStack(model->encoder()->Omegas(), "encoder", omegas.encoder);
  SetStack(model->decoder()->Omegas(), "decoder", omegas.decoder);
}

absl::StatusOr<EncoderDecoder> FoldAdminOmegas(const EncoderDecoder& model) {
  EncoderDecoderConfig config = model->config();
  const AdminBlocks admin = AdminBlocksOf(config);
  if (admin.encoder + admin.decoder == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "omegas are those of sublayer admin, but the sublayers "
        "are ",
        config.encoder_sublayer, " and ", config.decoder_sublayer));
  }
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<torch::nn::Module> copy = model->clone();
  auto parameters = copy->named_parameters();
  if (admin.encoder > 0) {
    ETC_RETURN_IF_ERROR(
        FoldStack(BlocksOfStack("encoder", config.num_encoder_layers, false),
                  parameters));
    config.encoder_sublayer = "post_norm";
  }
  if (admin.decoder > 0) {
    ETC_RETURN_IF_ERROR(FoldStack(
        BlocksOfStack("decoder", config.num_decoder_layers, true), parameters));
    config.decoder_sublayer = "post_norm";
  }
  EncoderDecoder plain(config);
  plain->to(parameters["embedding.weight"].device(),
            parameters["embedding.weight"].scalar_type());
  for (const auto& parameter : plain->named_parameters()) {
    torch::Tensor(parameter.value()).copy_(parameters[parameter.key()]);
  }
  plain->train(model->is_training());
  return plain;
}

absl::StatusOr<AdminOmegas> ReadAdminOmegas(const std::string& path,
                                            const AdminBlocks& blocks) {
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  if (static_cast<int64_t>(lines.size()) != blocks.encoder + blocks.decoder) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": should have ", blocks.encoder, " + ", blocks.decoder,
        " lines, one for each block of encoder and decoder, but has ",
        lines.size()));
  }
  AdminOmegas omegas;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = static_cast<int64_t>(i);
    const bool is_encoder = line < blocks.encoder;
    ETC_ASSIGN_OR_RETURN(
        const double value,
        ValueInLine(path, i, lines[i],
                    1 + line - (is_encoder ? 0 : blocks.encoder)));
    (is_encoder ? omegas.encoder : omegas.decoder).push_back(value);
  }
  return omegas;
}

}  // namespace etc
