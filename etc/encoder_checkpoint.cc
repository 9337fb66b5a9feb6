#include "etc/encoder_checkpoint.h"

#include <memory>
#include <utility>

#include "attention/score_buffer.h"
#include "etc/nn/gradient_checkpoint.h"

namespace etc {
namespace {

using Tensors = std::vector<torch::Tensor>;

// In the order of WithScores; none: no scores.
Tensors ScoreTensors(const ResidualScores& scores) {
  return scores.g2g.defined()
             ? Tensors{*scores.g2g, *scores.g2l, *scores.l2g, *scores.l2l}
             : Tensors();
}

// Both streams, and the scores where there are any.
Tensors Pack(const EncoderState& state) {
  Tensors tensors = {state.long_states, state.global_states};
  const Tensors scores = ScoreTensors(state.scores);
  tensors.insert(tensors.end(), scores.begin(), scores.end());
  return tensors;
}

// Where the scores of the two softmaxes are.
struct LivePlaces {
  LiveScores longs;
  LiveScores globals;
};

EncoderState Unpack(const Tensors& tensors, int64_t layers,
                    const LivePlaces& live = {}) {
  EncoderState state = {.long_states = tensors[0], .global_states = tensors[1]};
  if (tensors.size() > 2) {
    state.scores = {.g2g = ScoreTensor(tensors[2], live.globals),
                    .g2l = ScoreTensor(tensors[3], live.globals),
                    .l2g = ScoreTensor(tensors[4], live.longs),
                    .l2l = ScoreTensor(tensors[5], live.longs),
                    .layers = layers};
  }
  return state;
}

// Scores of one softmax as they will be taken again: tensors only where they
// are in no buffer.
ResidualPair ToTakeAgain(const ScoreTensor& own, const ScoreTensor& other,
                         int64_t layers) {
  if (!own.defined() || own.live().buffer != nullptr) {
    return {.layers = layers};
  }
  return {.own = own->detach(), .other = other->detach(), .layers = layers};
}

// One layer whose scores stay in the buffer of its stack.
class LayerInPlace {
 public:
  LayerInPlace(const EncoderState& below, CheckpointedLayers layer)
      : layer_(std::move(layer)),
        taken_(below.scores),
        longs_(ToTakeAgain(taken_.l2l, taken_.l2g, taken_.layers)),
        globals_(ToTakeAgain(taken_.g2g, taken_.g2l, taken_.layers)) {}

  // The layer, from the streams and the scores of the constructor or, later, of
  // TakeAgain.
  Tensors Run(const Tensors& inputs) {
    const EncoderState above = layer_.run({.long_states = inputs[0],
                                           .global_states = inputs[1],
                                           .scores = std::exchange(taken_, {})},
                                          std::exchange(has_run_, true));
    left_ = {.longs = above.scores.l2l.live(),
             .globals = above.scores.g2g.live()};
    return Pack(above);
  }

  Tensors TakeAgain() {
    const ResidualPair longs = ScoresTakenAgain(longs_, left_.longs);
    const ResidualPair globals = ScoresTakenAgain(globals_, left_.globals);
    taken_ = {.g2g = globals.own,
              .g2l = globals.other,
              .l2g = longs.other,
              .l2l = longs.own,
              .layers = longs.layers};
    return ScoreTensors(taken_);
  }

  const LivePlaces& left() const { return left_; }

 private:
  const CheckpointedLayers layer_;
  ResidualScores taken_;
  const ResidualPair longs_;
  const ResidualPair globals_;
  LivePlaces left_;
  bool has_run_ = false;
};

// Returns true if a softmax has no scores yet, or none that another layer would
// leave as they are.
bool IsInBuffer(const ScoreTensor& own, const ScoreTensor& other) {
  return !own.defined() || own.live().buffer != nullptr ||
         own->numel() + other->numel() == 0;
}

}  // namespace

EncoderState CheckpointLayers(const EncoderState& state,
                              const CheckpointedLayers& layers) {
  const int64_t below = state.scores.layers;
  const int64_t above = below + layers.count;
  if (layers.count == 1 && layers.storage == ScoreStorage::kReverse &&
      IsInBuffer(state.scores.l2l, state.scores.l2g) &&
      IsInBuffer(state.scores.g2g, state.scores.g2l)) {
    const auto layer = std::make_shared<LayerInPlace>(state, layers);
    const Tensors outputs = CheckpointGradients(
        [layer](const Tensors& inputs) { return layer->Run(inputs); },
        {state.long_states, state.global_states}, layers.parameters,
        {.first = ScoreTensors(state.scores),
         .again = [layer] { return layer->TakeAgain(); }});
    return Unpack(outputs, above, layer->left());
  }
  const auto has_run = std::make_shared<bool>(false);
  return Unpack(CheckpointGradients(
                    [layers, below, has_run](const Tensors& inputs) {
                      return Pack(layers.run(Unpack(inputs, below),
                                             std::exchange(*has_run, true)));
                    },
                    Pack(state), layers.parameters),
                above);
}

}  // namespace etc
