#include "etc/encoder_checkpoint.h"

#include <memory>
#include <utility>

#include "etc/nn/gradient_checkpoint.h"
#include "etc/scores_in_place.h"

namespace etc {
namespace {

using Tensors = std::vector<torch::Tensor>;

// Both streams, and the scores where there are any.
Tensors Pack(const EncoderState& state) {
  Tensors tensors = {state.long_states, state.global_states};
  const Tensors scores = ScoreTensors(state.scores);
  tensors.insert(tensors.end(), scores.begin(), scores.end());
  return tensors;
}

EncoderState Unpack(const Tensors& tensors, int64_t layers,
                    const LivePlaces& live = {}) {
  return {.long_states = tensors[0],
          .global_states = tensors[1],
          .scores = ScoresOf(Tensors(tensors.begin() + 2, tensors.end()),
                             layers, live)};
}

// One layer whose scores stay in the buffer of its stack.
class LayerInPlace {
 public:
  LayerInPlace(const EncoderState& below, CheckpointedLayers layer)
      : layer_(std::move(layer)), scores_(below.scores) {}

  // The layer, from the streams and the scores of the constructor or, later, of
  // TakeAgain.
  Tensors Run(const Tensors& inputs) {
    const EncoderState above = layer_.run({.long_states = inputs[0],
                                           .global_states = inputs[1],
                                           .scores = scores_.Take()},
                                          std::exchange(has_run_, true));
    scores_.Left(above.scores);
    return Pack(above);
  }

  Tensors TakeAgain() { return scores_.TakeAgain(); }

  const LivePlaces& left() const { return scores_.left(); }

 private:
  const CheckpointedLayers layer_;
  ScoresInPlace scores_;
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
