#ifndef ETC_ETC_SCORES_IN_PLACE_H_
#define ETC_ETC_SCORES_IN_PLACE_H_

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "attention/residual_scores.h"

namespace etc {

// g2g, g2l, l2g, l2l; none: no scores. Throws c10::Error if their buffer holds
// others by now.
std::vector<torch::Tensor> ScoreTensors(const ResidualScores& scores);

// Where the scores of both softmaxes of a layer are.
struct LivePlaces {
  LiveScores longs;
  LiveScores globals;
};

// The scores of these tensors (ScoreTensors), of `layers` layers.
ResidualScores ScoresOf(const std::vector<torch::Tensor>& tensors,
                        int64_t layers, const LivePlaces& live = {});

// The scores that a layer takes and leaves, where its backward pass runs the
// layer again: they stay in the buffer of the stack, out of which it takes its
// own. Those in no buffer are kept, as are those of a softmax without queries
// (OutputRows), which leaves them where they are. Several runs may follow each
// other; each calls Take, then Left.
class ScoresInPlace {
 public:
  explicit ScoresInPlace(const ResidualScores& below);

  // The scores from below, for the first run or after TakeAgain.
  ResidualScores Take();
  // The scores that the run has given.
  void Left(const ResidualScores& above);
  // Brings those from below back for another run, as leaves of a graph of its
  // own, and returns them. Throws c10::Error as ScoresTakenAgain does.
  std::vector<torch::Tensor> TakeAgain();

  const LivePlaces& left() const { return left_; }

 private:
  // The scores of one softmax.
  struct Side {
    Side(const ScoreTensor& own, const ScoreTensor& other, int64_t layers);
    void Left(const LiveScores& live);
    ResidualPair TakeAgain() const;

    ResidualPair below;
    // Tensors only where they are in no buffer.
    ResidualPair kept;
    LiveScores left;
    bool has_no_queries = false;
  };

  ResidualScores taken_;
  Side longs_, globals_;
  LivePlaces left_;
};

}  // namespace etc

#endif  // ETC_ETC_SCORES_IN_PLACE_H_
