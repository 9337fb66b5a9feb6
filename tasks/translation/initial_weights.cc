#include "tasks/translation/initial_weights.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/residual_choice.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "tasks/output/checkpoint_files.h"

namespace etc {
namespace {

// The configuration of the model whose weights are at `path`, if it is known.
// `heads` as of FairseqConfig.
absl::StatusOr<std::optional<EncoderDecoderConfig>> ReadConfigOfInit(
    const std::string& path, int64_t heads) {
  ETC_ASSIGN_OR_RETURN(const TensorReader reader, TensorReader::Open(path));
  std::optional<EncoderDecoderConfig> config;
  const std::string file = FileBesideWeights(path, kEncoderDecoderFile);
  if (IsFairseqTranslation(reader)) {
    ETC_ASSIGN_OR_RETURN(config, FairseqConfig(reader, heads));
    if (!HasFairseqOptions(reader)) {
      config.reset();
    }
  } else if (!file.empty()) {
    ETC_ASSIGN_OR_RETURN(config, ReadEncoderDecoderConfig(FolderOf(file)));
  }
  return config;
}

// Compares what no tensor shows, or shows by names that say less.
absl::Status CheckSameFunction(const RunConfig& run,
                               const EncoderDecoderConfig& theirs) {
  const EncoderDecoderConfig& ours = *run.encoder_decoder;
  const auto differ = [&run](const char* name, const auto& expected,
                             const auto& found) {
    return InvalidArgument(run.source, ": model.", name, " should be ",
                           expected, ", that of init, ", run.init, ", but is ",
                           found);
  };
  if (ours.num_attention_heads != theirs.num_attention_heads) {
    return differ("num_attention_heads", theirs.num_attention_heads,
                  ours.num_attention_heads);
  }
  if (ours.hidden_act != theirs.hidden_act) {
    return differ("hidden_act", theirs.hidden_act, ours.hidden_act);
  }
  if (ours.encoder_sublayer != theirs.encoder_sublayer) {
    return differ("encoder_sublayer", theirs.encoder_sublayer,
                  ours.encoder_sublayer);
  }
  if (ours.decoder_sublayer != theirs.decoder_sublayer) {
    return differ("decoder_sublayer", theirs.decoder_sublayer,
                  ours.decoder_sublayer);
  }
  if (ours.layer_norm_epsilon != theirs.layer_norm_epsilon) {
    return differ("layer_norm_epsilon", theirs.layer_norm_epsilon,
                  ours.layer_norm_epsilon);
  }
  return absl::OkStatus();
}

// Compares the ids that both vocabularies have. Of several beside the weights,
// theirs is the one of the run's type.
absl::Status CheckPiecesOfInit(const RunConfig& run,
                               const TranslationVocabulary& ours) {
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles found,
                       FindTranslationTokenizer(run.init, run.tokenizer.type));
  if (found.type.empty()) {
    return absl::OkStatus();
  }
  const std::string& path = found.vocabulary;
  ETC_ASSIGN_OR_RETURN(
      const std::shared_ptr<const TranslationVocabulary> theirs,
      LoadTranslationVocabulary({.type = found.type, .vocabulary = path}));
  const int64_t size = std::min(ours.size(), theirs->size());
  for (int64_t id = 0; id < size; ++id) {
    if (ours.Piece(id) != theirs->Piece(id)) {
      return InvalidArgument(
          run.source, ": tokenizer.vocabulary should have the pieces of ", path,
          ", beside the weights of init, but piece ", id, " is ",
          QuotedName(ours.Piece(id)), ", not ", QuotedName(theirs->Piece(id)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LoadInitialTranslationWeights(
    const RunConfig& config, const TranslationVocabulary& vocabulary,
    const TranslationModel& model) {
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(config.init));
  const EncoderDecoderConfig& ours = *config.encoder_decoder;
  ETC_ASSIGN_OR_RETURN(const std::optional<EncoderDecoderConfig> theirs,
                       ReadConfigOfInit(config.init, ours.num_attention_heads));
  std::string line = absl::StrCat("encoder-decoder: from ", config.init);
  if (theirs.has_value()) {
    ETC_RETURN_IF_ERROR(CheckSameFunction(config, *theirs));
    if (ResidualText(ours) != ResidualText(*theirs)) {
      absl::StrAppend(&line, ", trained with residual attention ",
                      ResidualText(*theirs));
    }
  }
  ETC_RETURN_IF_ERROR(CheckPiecesOfInit(config, vocabulary));
  ETC_RETURN_IF_ERROR(LoadTranslationWeights(config.init, model));
  return line;
}

}  // namespace etc
