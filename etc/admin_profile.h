#ifndef ETC_ETC_ADMIN_PROFILE_H_
#define ETC_ETC_ADMIN_PROFILE_H_

#include "etc/model.h"

namespace etc {

// Sets the omegas of a model with sublayer "admin", one number in all elements
// of each, by one forward pass over a batch that it is to be trained on (Liu et
// al. 2020, section 4):
//
//   r = 1
//   for each block f, from the bottom to the top, with input x:
//     omega = r
//     r = sqrt(Var(omega x) + Var(D(f(x))))
//     y = LN(omega x + D(f(x)))        the input of the next block
//
// where Var is over all elements of all tokens but padding, which sees nothing,
// without Bessel's correction. Each stream has its own r. In front of a
// feed-forward block that both share, r^2 becomes the mean of the two over all
// tokens.
//
// For a model with random weights in training mode, where D is dropout with
// random numbers from LibTorch's generator; in evaluation mode D drops nothing.
// Weights that were trained depend on their omegas, which should stay.
//
// Throws c10::Error for other sublayers, and as EtcModel::forward does.
void InitializeAdmin(EtcModel model, const EtcInput& input);

// Returns true if all omegas of a model with sublayer "admin" are still 1, with
// which it computes what "post_norm" does.
bool HasUnitOmegas(const EtcModel& model);

}  // namespace etc

#endif  // ETC_ETC_ADMIN_PROFILE_H_
