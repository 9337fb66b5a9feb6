#include "etc/scores_in_place.h"

#include <utility>

#include "attention/score_buffer.h"

namespace etc {

std::vector<torch::Tensor> ScoreTensors(const ResidualScores& scores) {
  return scores.g2g.defined()
             ? std::vector<torch::Tensor>{*scores.g2g, *scores.g2l, *scores.l2g,
                                          *scores.l2l}
             : std::vector<torch::Tensor>();
}

ResidualScores ScoresOf(const std::vector<torch::Tensor>& tensors,
                        int64_t layers, const LivePlaces& live) {
  if (tensors.empty()) {
    return {};
  }
  return {.g2g = ScoreTensor(tensors[0], live.globals),
          .g2l = ScoreTensor(tensors[1], live.globals),
          .l2g = ScoreTensor(tensors[2], live.longs),
          .l2l = ScoreTensor(tensors[3], live.longs),
          .layers = layers};
}

ScoresInPlace::Side::Side(const ScoreTensor& own, const ScoreTensor& other,
                          int64_t layers)
    : below({.own = own, .other = other, .layers = layers}),
      kept({.layers = layers}) {
  if (own.defined() && own.live().buffer == nullptr) {
    kept.own = own->detach();
    kept.other = other->detach();
    below = {};
  }
}

void ScoresInPlace::Side::Left(const LiveScores& live) {
  left = live;
  has_no_queries = live.buffer == nullptr && below.defined();
}

ResidualPair ScoresInPlace::Side::TakeAgain() const {
  if (!has_no_queries) {
    return ScoresTakenAgain(kept, left);
  }
  const auto leaf = [](const ScoreTensor& scores) {
    return ScoreTensor(scores->variable_data().requires_grad_(true),
                       scores.live());
  };
  return {.own = leaf(below.own),
          .other = leaf(below.other),
          .layers = below.layers};
}

ScoresInPlace::ScoresInPlace(const ResidualScores& below)
    : taken_(below),
      longs_(below.l2l, below.l2g, below.layers),
      globals_(below.g2g, below.g2l, below.layers) {}

ResidualScores ScoresInPlace::Take() { return std::exchange(taken_, {}); }

void ScoresInPlace::Left(const ResidualScores& above) {
  left_ = {.longs = above.l2l.live(), .globals = above.g2g.live()};
  longs_.Left(left_.longs);
  globals_.Left(left_.globals);
}

std::vector<torch::Tensor> ScoresInPlace::TakeAgain() {
  const ResidualPair longs = longs_.TakeAgain();
  const ResidualPair globals = globals_.TakeAgain();
  taken_ = {.g2g = globals.own,
            .g2l = globals.other,
            .l2g = longs.other,
            .l2l = longs.own,
            .layers = longs.layers};
  return ScoreTensors(taken_);
}

}  // namespace etc
