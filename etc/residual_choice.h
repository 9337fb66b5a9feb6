#ifndef ETC_ETC_RESIDUAL_CHOICE_H_
#define ETC_ETC_RESIDUAL_CHOICE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/config.h"
#include "etc/encoder_decoder/config.h"

namespace etc {

// A mode of residual attention in one text, as --residual takes it:
//
//   off, sum, mean, decay, gate  the mode; all else stays as it was
//   decay=0.95                   decay, with this residual_decay
//   gate=0.5                     gate, with this residual_gate_init
struct ResidualChoice {
  std::string mode;  // EtcConfig::residual_attention
  std::optional<double> decay;
  std::optional<double> gate_init;
};

// kInvalidArgument, with all forms, for any other text.
absl::StatusOr<ResidualChoice> ParseResidualChoice(absl::string_view text);

// Sets the fields of `*config` that the text chooses. `source` is the model in
// messages.
//   kInvalidArgument  ParseResidualChoice; a decay that is too small for the
//                     depth of the model
absl::Status ApplyResidualChoice(absl::string_view text,
                                 const std::string& source, EtcConfig* config);
// The same of all three paths.
absl::Status ApplyResidualChoice(absl::string_view text,
                                 const std::string& source,
                                 EncoderDecoderConfig* config);

// The mode of a configuration in messages: "sum", and of decay "decay=0.9"; of
// an encoder-decoder those of encoder, decoder and cross attention:
// "sum, off, off".
std::string ResidualText(const EtcConfig& config);
std::string ResidualText(const EncoderDecoderConfig& config);

// A warning that a model computes another mode (ResidualText) than it was
// trained with: one that was trained with scores needs them, and the other way
// round.
std::string OtherModeText(absl::string_view trained, absl::string_view now);

}  // namespace etc

#endif  // ETC_ETC_RESIDUAL_CHOICE_H_
