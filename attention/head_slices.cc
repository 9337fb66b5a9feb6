#include "attention/head_slices.h"

#include <c10/util/Exception.h>

namespace etc {

AttentionStreams HeadSlices::Streams(const torch::Tensor& long_input,
                                     const torch::Tensor& global_input) const {
  return attention_->Streams(long_input, global_input);
}

HeadContexts HeadSlices::Forward(const LayerCall& call,
                                 std::vector<HeadProjection>* leaves) const {
  const HeadRange& heads = call.heads;
  const int64_t all = attention_->options().num_heads;
  TORCH_CHECK(
      heads.begin >= 0 && heads.count >= 1 && heads.begin + heads.count <= all,
      "heads should be some of ", all, ", but are ", heads.count, " from ",
      heads.begin, " on");
  GlobalLocalAttentionImpl::HeadSource source = attention_->ProductsOf(call);
  if (leaves != nullptr) {
    source = [products = std::move(source), leaves](
                 const torch::nn::Linear& projection, QuerySide stream,
                 const torch::Tensor& of_rows) {
      const torch::NoGradGuard no_grad;
      torch::Tensor leaf = products(projection, stream, of_rows);
      leaf.requires_grad_(true);
      leaves->push_back(
          {.projection = projection, .stream = stream, .heads = leaf});
      return leaf;
    };
  }
  HeadContexts contexts;
  contexts.scores = attention_->AttendBoth(
      call, source, [&](QuerySide side, const torch::Tensor& of_side) {
        (side == QuerySide::kLong ? contexts.longs : contexts.globals) =
            of_side;
      });
  return contexts;
}

torch::Tensor HeadSlices::Output(QuerySide side,
                                 const LinearInput& contexts) const {
  return attention_->Output(side, contexts);
}

const LinearProducts& HeadSlices::products() const {
  return attention_->products_;
}

}  // namespace etc
