#ifndef ETC_ETC_ENCODER_DECODER_ADMIN_OMEGAS_H_
#define ETC_ETC_ENCODER_DECODER_ADMIN_OMEGAS_H_

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/encoder_decoder/model.h"

namespace etc {

// The initial omegas of ADMIN (Liu et al. 2020; doc/translation.md 2): one
// number for each block of a stack, bottom to top, with which all elements of
// its omega begin. Of an encoder layer the blocks are self attention and
// feed-forward, of a decoder layer self attention, cross attention and
// feed-forward. A stack of another sublayer than "admin" has none.
struct AdminOmegas {
  std::vector<double> encoder = {};
  std::vector<double> decoder = {};
};

// The omega of all blocks of a stack of `blocks` that is not profiled,
//
//   sqrt((blocks + 1) / ln(blocks + 1) - 1)
//
// as ADMIN's authors have it in their later package: 2.0170 for an encoder of
// 6 layers, 2.3351 for a decoder of 6. Models with sublayer "admin" begin so.
double InitialAdminOmega(int64_t blocks);

// Sets omegas of one stack to that; none: nothing.
void FillOmegas(const std::vector<torch::Tensor>& omegas);

// The positions of a batch that variances are taken over.
enum class ProfiledPositions {
  kTokens,  // without padding
  kAll,     // with padding, as in ADMIN's code
};

// Sets the omegas of a model by one forward pass over a batch that it is to be
// trained on. For each stack,
//
//   r = 1
//   for each block f, bottom to top, with input x:
//     omega = r
//     r = sqrt(Var(omega x) + Var(D(f(x))))
//     y = LN(omega x + D(f(x)))        the input of the next block
//
// where Var is over all elements of the positions, without Bessel's correction,
// and D is dropout, which drops nothing in evaluation mode. Returns the omegas.
//
//   source_ids   [B, S]
//   decoder_ids  [B, T], each row beginning with kEndId
//
// Throws c10::Error if neither stack has sublayer "admin", and as forward does.
AdminOmegas ProfileAdmin(
    EncoderDecoder model, const torch::Tensor& source_ids,
    const torch::Tensor& decoder_ids,
    ProfiledPositions positions = ProfiledPositions::kTokens);

// Sets all elements of each omega. Throws c10::Error unless there is one for
// each block of the stacks with sublayer "admin", and none for others.
void SetAdminOmegas(EncoderDecoder model, const AdminOmegas& omegas);

// The same function as plain Post-LN (doc/translation.md 2): a model with
// sublayer "post_norm" for each stack with "admin", and parameters of its own.
// The omega of each block but a stack's first becomes part of the LayerNorm
// below, weight and bias, and its inverse part of the matrices that read the
// block's input.
//   kInvalidArgument  neither stack has sublayer "admin"; an omega with a 0; a
//                     first omega, whose input is the embedding, that is not 1,
//                     as after training
absl::StatusOr<EncoderDecoder> FoldAdminOmegas(const EncoderDecoder& model);

// The numbers of blocks that a file of omegas should have.
struct AdminBlocks {
  int64_t encoder = 0;
  int64_t decoder = 0;
};
// The blocks of a configuration.
AdminBlocks AdminBlocksOf(const EncoderDecoderConfig& config);

// Reads the file of ADMIN's code, profile.ratio.init: lines "<index> <value>",
// index from 1 within each stack, the encoder's before the decoder's.
//   kInvalidArgument  "<path>:<line>: ..." for malformed lines, bad indices,
//                     values not above 0, or a number of lines other than of
//                     blocks
//   others            those of reading a file
absl::StatusOr<AdminOmegas> ReadAdminOmegas(const std::string& path,
                                            const AdminBlocks& blocks);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_ADMIN_OMEGAS_H_
