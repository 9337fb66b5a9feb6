#ifndef ETC_ETC_ADMIN_PROFILE_H_
#define ETC_ETC_ADMIN_PROFILE_H_

#include "etc/config.h"
#include "etc/encoder_layer.h"
#include "etc/model.h"

namespace etc {

// The start of a pass that sets omegas (EtcModelImpl::ProfileNextPass): r = 1,
// and the tokens of `input` that are not padding, which sees nothing
// (AttentionInputs). Without patterns it needs ExplicitInputs of the batch.
// Throws c10::Error if there are no tokens, or the attention does not fit them.
AdminProfile BeginAdminProfile(const EtcInput& input, const EtcConfig& config);

// Returns true if all omegas of a model with sublayer "admin" are still 1, with
// which it computes what "post_norm" does.
bool HasUnitOmegas(const EtcModel& model);

}  // namespace etc

#endif  // ETC_ETC_ADMIN_PROFILE_H_
