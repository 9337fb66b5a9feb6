#include "etc/residual_choice.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "attention/residual_attention.h"
#include "base/status_macros.h"

namespace etc {
namespace {

std::string ModeText(const std::string& mode, double decay) {
  return mode == "decay" ? absl::StrCat("decay=", decay) : mode;
}

}  // namespace

absl::StatusOr<ResidualChoice> ParseResidualChoice(absl::string_view text) {
  const size_t sign = text.find('=');
  const absl::string_view mode = text.substr(0, sign);
  ResidualChoice choice{.mode = std::string(mode)};
  bool is_good = ResidualAttentionNamed(choice.mode).has_value();
  if (sign != absl::string_view::npos) {
    double value = 0;
    is_good =
        absl::SimpleAtod(text.substr(sign + 1), &value) && std::isfinite(value);
    if (mode == "decay") {
      is_good = is_good && value > 0 && value < 1;
      choice.decay = value;
    } else {
      is_good = is_good && mode == "gate";
      choice.gate_init = value;
    }
  }
  if (!is_good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "residual attention should be off, sum, mean, decay, gate, decay=BETA "
        "with a number above 0 and below 1, or gate=INITIAL with a number, but "
        "is \"",
        text, "\""));
  }
  return choice;
}

absl::Status ApplyResidualChoice(absl::string_view text,
                                 const std::string& source, EtcConfig* config) {
  ETC_ASSIGN_OR_RETURN(const ResidualChoice choice, ParseResidualChoice(text));
  config->residual_attention = choice.mode;
  config->residual_decay = choice.decay.value_or(config->residual_decay);
  config->residual_gate_init =
      choice.gate_init.value_or(config->residual_gate_init);
  return CheckEtcConfig(
      *config, absl::StrCat(source, " with residual attention ", text));
}

absl::Status ApplyResidualChoice(absl::string_view text,
                                 const std::string& source,
                                 EncoderDecoderConfig* config) {
  ETC_ASSIGN_OR_RETURN(const ResidualChoice choice, ParseResidualChoice(text));
  config->encoder_residual_attention = choice.mode;
  config->decoder_residual_attention = choice.mode;
  config->cross_residual_attention = choice.mode;
  config->residual_decay = choice.decay.value_or(config->residual_decay);
  config->residual_gate_init =
      choice.gate_init.value_or(config->residual_gate_init);
  return CheckEncoderDecoderConfig(
      *config, absl::StrCat(source, " with residual attention ", text));
}

std::string ResidualText(const EtcConfig& config) {
  return ModeText(config.residual_attention, config.residual_decay);
}

std::string ResidualText(const EncoderDecoderConfig& config) {
  const auto text = [&config](const std::string& mode) {
    return ModeText(mode, config.residual_decay);
  };
  return absl::StrCat(text(config.encoder_residual_attention), ", ",
                      text(config.decoder_residual_attention), ", ",
                      text(config.cross_residual_attention));
}

std::string OtherModeText(absl::string_view trained, absl::string_view now) {
  return absl::StrCat(
      "residual attention: trained with ", trained, ", now ", now,
      "; the model has learnt with the scores of ", trained,
      ", so expect worse results: to compare the two, train with each");
}

}  // namespace etc
