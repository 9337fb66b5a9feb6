#include "etc/sliced_layer.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "attention/head_slices.h"
#include "base/check_tensor.h"
#include "base/dropout_seeds.h"
#include "base/matrix_product.h"
#include "base/tensor_file.h"
#include "etc/nn/gradient_checkpoint.h"
#include "etc/scores_in_place.h"

namespace etc {
namespace {

using Variables = torch::autograd::variable_list;

constexpr QuerySide kSides[] = {QuerySide::kLong, QuerySide::kGlobal};

// Two of a kind: of the long and of the global stream.
template <typename T>
struct OfBoth {
  T longs, globals;

  T& operator[](QuerySide side) {
    return side == QuerySide::kLong ? longs : globals;
  }
  const T& operator[](QuerySide side) const {
    return side == QuerySide::kLong ? longs : globals;
  }
};
using Streams = OfBoth<torch::Tensor>;

// Some heads, and the scores that they take and leave.
struct HeadGroup {
  HeadRange heads;
  ScoresInPlace scores;
};

torch::Tensor TokenRows(const torch::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.flatten(0, 1);
}

// Adds `term`, if it is defined, to `sum`, which may be undefined: zeros. The
// sum may become the term's own memory.
void AddTo(torch::Tensor* sum, const torch::Tensor& term) {
  if (!term.defined()) {
    return;
  }
  if (sum->defined()) {
    sum->add_(term);
  } else {
    *sum = term;
  }
}

// Gradients of `sources`, one after the other, undefined for those that are not
// reached or need none.
Variables GradientsOf(const Variables& roots, const Variables& root_gradients,
                      const Variables& sources) {
  Variables reached_roots, reached_gradients, leaves;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].requires_grad() && root_gradients[i].defined()) {
      reached_roots.push_back(roots[i]);
      reached_gradients.push_back(root_gradients[i]);
    }
  }
  for (const torch::Tensor& source : sources) {
    if (source.requires_grad()) {
      leaves.push_back(source);
    }
  }
  Variables gradients(sources.size());
  if (reached_roots.empty() || leaves.empty()) {
    return gradients;
  }
  const Variables found = torch::autograd::grad(
      reached_roots, leaves, reached_gradients, /*retain_graph=*/c10::nullopt,
      /*create_graph=*/false, /*allow_unused=*/true);
  auto next = found.begin();
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].requires_grad()) {
      gradients[i] = *next++;
    }
  }
  return gradients;
}

const LinearInput& FactorOf(const AttentionStreams& streams, QuerySide side) {
  return side == QuerySide::kLong ? streams.longs : streams.globals;
}

torch::Tensor LeafOver(const torch::Tensor& values) {
  return values.detach().requires_grad_(true);
}

// Float32 zeros of the same shape, of no memory.
torch::Tensor ShapeOf(const torch::Tensor& tensor) {
  return torch::zeros({1}).expand(tensor.sizes());
}

// The gradients of the products of one stream with its projections, which come
// heads by heads, and what follows from them once all are there.
class ProjectionGradients {
 public:
  // Takes those of the heads behind the ones before: `leaves` are all products
  // of this stream, always the same projections. `type` is that of operands of
  // products.
  void Put(const std::vector<HeadProjection>& leaves,
           const Variables& gradients, torch::ScalarType type) {
    Variables of_heads, biases;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const torch::Tensor& leaf = leaves[i].heads;
      // [B, heads, length, d] as [B * length, heads * d].
      const torch::Tensor rows =
          (gradients[i].defined() ? gradients[i] : torch::zeros_like(leaf))
              .transpose(1, 2)
              .reshape(
                  {leaf.size(0) * leaf.size(2), leaf.size(1) * leaf.size(3)});
      if (i == projections_.size()) {
        projections_.push_back(leaves[i].projection);
      }
      of_heads.push_back(rows.to(type));
      biases.push_back(rows.sum(0));
    }
    if (!leaves.empty()) {
      groups_.push_back(std::move(of_heads));
      biases_.push_back(std::move(biases));
    }
  }

  // True until there is one.
  bool IsEmpty() const {
    return groups_.empty() || groups_.front().front().numel() == 0;
  }
  // Gradients of products of some tokens, [count, projections * features].
  torch::Tensor Rows(int64_t begin, int64_t count) const {
    Variables columns;
    for (size_t i = 0; i < projections_.size(); ++i) {
      for (const Variables& of_heads : groups_) {
        columns.push_back(of_heads[i].narrow(0, begin, count));
      }
    }
    return torch::cat(columns, 1);
  }
  const std::vector<torch::nn::Linear>& projections() const {
    return projections_;
  }
  // The sum over tokens, of the bias of a projection: [features].
  torch::Tensor Bias(size_t projection) const {
    Variables parts;
    for (const Variables& of_heads : biases_) {
      parts.push_back(of_heads[projection]);
    }
    return torch::cat(parts);
  }

 private:
  std::vector<torch::nn::Linear> projections_;
  // [groups of heads][projections]
  std::vector<Variables> groups_, biases_;
};

// One layer in one pass of the model.
class SlicedPass : public torch::CustomClassHolder {
 public:
  SlicedPass(std::shared_ptr<EtcEncoderLayerImpl> layer,
             const SlicedState& below, AttentionInputs attention,
             const ResidualOptions& residual, OutputRows rows,
             const LayerSlices& slices)
      : layer_(std::move(layer)),
        head_slices_(layer_->attention()),
        attention_(std::move(attention)),
        residual_(residual),
        rows_(std::move(rows)),
        slices_(slices),
        modes_(layer_->modes()),
        parameters_(layer_->parameters()) {
    const int64_t heads = options().num_heads;
    const int64_t step = std::min(slices.heads, heads);
    for (int64_t begin = 0; begin < heads; begin += step) {
      const size_t i = groups_.size();
      groups_.push_back(
          {.heads = {.begin = begin, .count = std::min(step, heads - begin)},
           .scores = ScoresInPlace(below.scores.empty() ? ResidualScores()
                                                        : below.scores.at(i))});
    }
  }

  const Variables& parameters() const { return parameters_; }

  // Without gradient. `contexts` become those of all heads, [tokens, A] or of
  // rows, as operands: for Backward.
  SlicedState Forward(const Streams& streams, Streams* contexts) {
    SlicedState above;
    *contexts = Attend(streams, &above.scores);
    DrawSeeds(streams);
    above.long_states = FinishAll(QuerySide::kLong, *contexts, streams);
    above.global_states = FinishAll(QuerySide::kGlobal, *contexts, streams);
    return above;
  }

  // Writes the long stream and its contexts into files, if there is a directory
  // for them.
  bool KeepInFiles(const torch::Tensor& longs, const torch::Tensor& contexts) {
    if (slices_.directory.empty()) {
      return false;
    }
    kept_longs_.emplace(slices_.directory, longs);
    kept_contexts_.emplace(slices_.directory, contexts);
    return true;
  }
  torch::Tensor KeptLongs() const { return kept_longs_->Read(); }
  torch::Tensor KeptContexts() const { return kept_contexts_->Read(); }

  // Gradients of streams, scores and parameters, in this order, from those of
  // what Forward returned. Computes contexts that are undefined once more.
  // Frees contexts and gradients where it can.
  Variables Backward(Streams streams, Streams contexts, Streams above,
                     const std::vector<Variables>& scores_above) {
    layer_->CheckModes(modes_);
    gradients_of_parameters_ = Variables(parameters_.size());
    if (!contexts.globals.defined()) {
      for (HeadGroup& group : groups_) {
        group.scores.TakeAgain();
      }
      std::vector<ResidualScores> scores;
      contexts = Attend(streams, &scores);
    }
    Streams gradients;
    OfBoth<Variables> of_contexts;
    for (const QuerySide side : kSides) {
      gradients[side] =
          FinishGradients(side, streams, contexts[side], std::move(above[side]),
                          &of_contexts[side]);
      contexts[side].reset();
    }
    Variables result(2);
    AttentionGradients(std::move(streams), std::move(of_contexts), scores_above,
                       &gradients, &result);
    result[0] = gradients.longs;
    result[1] = gradients.globals;
    result.insert(result.end(), gradients_of_parameters_.begin(),
                  gradients_of_parameters_.end());
    return result;
  }

 private:
  // The contexts of all heads; appends the scores of each group, if there are
  // any.
  Streams Attend(const Streams& streams, std::vector<ResidualScores>* scores) {
    const AttentionStreams inputs = head_slices_.Streams(
        layer_->AttentionInput(QuerySide::kLong, streams.longs),
        layer_->AttentionInput(QuerySide::kGlobal, streams.globals));
    Streams contexts;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const HeadContexts some = RunGroup(inputs, i, /*leaves=*/nullptr);
      if (some.scores.g2g.defined()) {
        scores->push_back(some.scores);
      }
      PutHeads(TokenRows(some.longs), groups_[i].heads, &contexts.longs);
      PutHeads(TokenRows(some.globals), groups_[i].heads, &contexts.globals);
    }
    return contexts;
  }

  const GlobalLocalAttentionOptions& options() const {
    return layer_->attention()->options();
  }
  const LinearProducts& products() const { return head_slices_.products(); }
  const torch::Tensor& WantedOf(QuerySide side) const {
    return side == QuerySide::kLong ? rows_.longs : rows_.globals;
  }
  // The rows of the stream that outputs are wanted of, [R, H].
  torch::Tensor WantedRows(QuerySide side, const Streams& streams) const {
    return TokenRows(RowsOf(streams[side], WantedOf(side)));
  }

  // The first group of the first run draws the seeds of attention; all others
  // draw the same.
  HeadContexts RunGroup(const AttentionStreams& inputs, size_t index,
                        std::vector<HeadProjection>* leaves) {
    HeadGroup& group = groups_[index];
    HeadContexts contexts;
    const auto run = [&] {
      const CarriedScores carried = {.residual = residual_,
                                     .previous = group.scores.Take()};
      contexts = head_slices_.Forward({.streams = inputs,
                                       .attention = attention_,
                                       .carried = carried,
                                       .rows = rows_,
                                       .heads = group.heads},
                                      leaves);
    };
    if (index == 0 && !std::exchange(has_seeds_, true)) {
      const RecordDropoutSeeds seeds(&attention_seeds_);
      run();
    } else {
      RunWithSeeds(attention_seeds_, run);
    }
    group.scores.Left(contexts.scores);
    return contexts;
  }

  // Features of some heads among those of all, [tokens, A].
  torch::Tensor HeadsOf(const torch::Tensor& all,
                        const HeadRange& heads) const {
    const int64_t size = options().head_size;
    return all.narrow(1, heads.begin * size, heads.count * size);
  }

  void PutHeads(const torch::Tensor& some, const HeadRange& heads,
                torch::Tensor* all) const {
    if (!all->defined()) {
      *all = torch::empty(
          {some.size(0), options().num_heads * options().head_size},
          some.options().dtype(products().OperandType(some)));
    }
    HeadsOf(*all, heads).copy_(some);
  }

  // Rows of contexts as a factor. The gradient is found of the value, of which
  // the product reads the shape alone if the operand is rounded.
  LinearInput ContextFactor(const torch::Tensor& contexts) const {
    if (contexts.scalar_type() != torch::kBFloat16) {
      return products().Input(LeafOver(contexts));
    }
    return {.value = ShapeOf(contexts).requires_grad_(true),
            .operand = contexts};
  }

  // Draws seeds in the order of EtcEncoderLayer::forward.
  void DrawSeeds(const Streams& streams) {
    if (layer_->hidden_dropout() == 0.0) {
      return;
    }
    for (int connection = 0; connection < 2; ++connection) {
      for (const QuerySide side : kSides) {
        if (streams[side].numel() > 0 && !AsksForNone(WantedOf(side))) {
          finish_seeds_[side].push_back(DrawDropoutSeed());
        }
      }
    }
  }

  // Calls function(begin, count) for the slices of `rows` rows.
  template <typename Function>
  void ForEachSlice(int64_t rows, const Function& function) const {
    for (int64_t begin = 0; begin < rows; begin += slices_.tokens) {
      function(begin, std::min(slices_.tokens, rows - begin));
    }
  }

  torch::Tensor FinishAll(QuerySide side, const Streams& contexts,
                          const Streams& streams) {
    const torch::Tensor before = WantedRows(side, streams);
    torch::Tensor after = torch::empty_like(before);
    ForEachSlice(before.size(0), [&](int64_t begin, int64_t count) {
      const ReplayDropoutSeeds seeds(finish_seeds_[side]);
      after.narrow(0, begin, count)
          .copy_(layer_->Finish(
              side, ContextFactor(contexts[side].narrow(0, begin, count)),
              before.narrow(0, begin, count), begin));
    });
    return WantedOf(side).defined() ? after : after.view(streams[side].sizes());
  }

  // The gradient of the stream by all that follows attention, in the memory of
  // `above` if nobody else holds that; and those of the contexts of each group
  // of heads, [tokens, features], none if there are none.
  torch::Tensor FinishGradients(QuerySide side, const Streams& streams,
                                const torch::Tensor& contexts,
                                torch::Tensor above, Variables* of_contexts) {
    const torch::Tensor before = WantedRows(side, streams);
    if (before.size(0) == 0 || !above.defined()) {
      return torch::zeros_like(streams[side]);
    }
    const bool is_ours = above.use_count() == 1 && above.is_contiguous() &&
                         above.storage().use_count() == 1;
    const torch::Tensor above_rows = TokenRows(above.contiguous());
    above.reset();
    torch::Tensor gradient =
        is_ours ? above_rows : torch::empty_like(above_rows);
    for (const HeadGroup& group : groups_) {
      of_contexts->push_back(
          torch::empty_like(HeadsOf(contexts, group.heads), before.options(),
                            torch::MemoryFormat::Contiguous));
    }
    ForEachSlice(before.size(0), [&](int64_t begin, int64_t count) {
      const torch::AutoGradMode with_gradients(true);
      const ReplayDropoutSeeds seeds(finish_seeds_[side]);
      const LinearInput factor =
          ContextFactor(contexts.narrow(0, begin, count));
      Variables sources = {factor.value,
                           LeafOver(before.narrow(0, begin, count))};
      const torch::Tensor after =
          layer_->Finish(side, factor, sources[1], begin);
      sources.insert(sources.end(), parameters_.begin(), parameters_.end());
      const Variables found =
          GradientsOf({after}, {above_rows.narrow(0, begin, count)}, sources);
      const torch::NoGradGuard no_grad;
      for (size_t i = 0; i < groups_.size(); ++i) {
        (*of_contexts)[i]
            .narrow(0, begin, count)
            .copy_(HeadsOf(found[0], groups_[i].heads));
      }
      gradient.narrow(0, begin, count).copy_(found[1]);
      AddParameterGradients(found.begin() + 2);
    });
    if (!WantedOf(side).defined()) {
      return gradient.view(streams[side].sizes());
    }
    torch::Tensor all = torch::zeros_like(TokenRows(streams[side]));
    all.index_add_(0, WantedOf(side), gradient);
    return all.view(streams[side].sizes());
  }

  // A stream as attention takes it, [B, length, H], in the graph of `leaf`.
  struct AttentionSource {
    torch::Tensor leaf, input;
    bool is_stream() const { return input.is_same(leaf); }
  };

  // Adds the gradients of the streams by attention, given those of contexts, to
  // `gradients`, and appends those of the scores from below.
  void AttentionGradients(Streams streams, OfBoth<Variables> of_contexts,
                          const std::vector<Variables>& scores_above,
                          Streams* gradients, Variables* result) {
    OfBoth<AttentionSource> sources;
    for (const QuerySide side : kSides) {
      const torch::AutoGradMode with_gradients(true);
      AttentionSource& source = sources[side];
      source.leaf = LeafOver(std::exchange(streams[side], {}));
      source.input = layer_->AttentionInput(side, source.leaf);
    }
    AttentionStreams factors = head_slices_.Streams(
        sources.longs.input.detach(), sources.globals.input.detach());
    Forget(&sources.longs, rows_.longs, &factors.longs);
    std::optional<TensorFile> of_longs;
    if (!slices_.directory.empty()) {
      of_longs.emplace(slices_.directory,
                       std::exchange(gradients->longs, torch::Tensor()));
    }
    OfBoth<ProjectionGradients> products;
    for (size_t i = 0; i < groups_.size(); ++i) {
      Streams of_group;
      for (const QuerySide side : kSides) {
        if (!of_contexts[side].empty()) {
          of_group[side] = std::exchange(of_contexts[side][i], {});
        }
      }
      GroupGradients(factors, std::move(of_group), i,
                     scores_above.empty() ? Variables() : scores_above[i],
                     &products, result);
    }
    if (of_longs.has_value()) {
      gradients->longs = of_longs->Read();
    }
    for (const QuerySide side : kSides) {
      const AttentionSource& source = sources[side];
      const LinearInput& factor = FactorOf(factors, side);
      torch::Tensor& gradient = (*gradients)[side];
      if (source.is_stream()) {
        InputGradient(factor, products[side], &gradient);
        continue;
      }
      torch::Tensor of_input = torch::zeros_like(gradient);
      InputGradient(factor, products[side], &of_input);
      Variables leaves = {source.leaf};
      leaves.insert(leaves.end(), parameters_.begin(), parameters_.end());
      const Variables found = GradientsOf({source.input}, {of_input}, leaves);
      AddTo(&gradient, found[0]);
      AddParameterGradients(found.begin() + 1);
    }
  }

  // Frees a stream that its rounded copy takes the place of: that products
  // read, while its shape alone is asked for.
  static void Forget(AttentionSource* source, const torch::Tensor& rows,
                     LinearInput* factor) {
    if (!source->is_stream() || rows.defined() || !factor->operand.defined() ||
        factor->operand.scalar_type() != torch::kBFloat16) {
      return;
    }
    factor->value = ShapeOf(factor->value);
    source->leaf = factor->value;
    source->input = factor->value;
  }

  // Computes one group of heads again: adds its part of `products` and the
  // gradients of gates and relative tables, appends those of the scores from
  // below.
  void GroupGradients(const AttentionStreams& factors, Streams of_contexts,
                      size_t index, const Variables& scores_above,
                      OfBoth<ProjectionGradients>* products,
                      Variables* result) {
    const torch::AutoGradMode with_gradients(true);
    const Variables scores = groups_[index].scores.TakeAgain();
    std::vector<HeadProjection> leaves;
    HeadContexts some = RunGroup(factors, index, &leaves);
    Variables roots = {some.longs, some.globals};
    Variables root_gradients = {std::move(of_contexts.longs),
                                std::move(of_contexts.globals)};
    for (size_t i = 0; i < root_gradients.size(); ++i) {
      if (root_gradients[i].defined()) {
        root_gradients[i] = root_gradients[i].view_as(roots[i]);
      }
    }
    const Variables scores_left = ScoreTensors(some.scores);
    roots.insert(roots.end(), scores_left.begin(), scores_left.end());
    root_gradients.insert(root_gradients.end(), scores_above.begin(),
                          scores_above.end());
    root_gradients.resize(roots.size());
    some = {};
    Variables sources = scores;
    sources.insert(sources.end(), parameters_.begin(), parameters_.end());
    for (const HeadProjection& leaf : leaves) {
      sources.push_back(leaf.heads);
    }
    const Variables found = GradientsOf(roots, root_gradients, sources);
    const torch::NoGradGuard no_grad;
    const auto parameters = found.begin() + static_cast<int64_t>(scores.size());
    result->insert(result->end(), found.begin(), parameters);
    AddParameterGradients(parameters);
    auto next = parameters + static_cast<int64_t>(parameters_.size());
    OfBoth<std::vector<HeadProjection>> leaves_of;
    OfBoth<Variables> found_of;
    for (const HeadProjection& leaf : leaves) {
      leaves_of[leaf.stream].push_back(leaf);
      found_of[leaf.stream].push_back(*next++);
    }
    for (const QuerySide side : kSides) {
      const LinearInput& factor = FactorOf(factors, side);
      (*products)[side].Put(leaves_of[side], found_of[side],
                            this->products().OperandType(factor.value));
    }
  }

  // Adds the gradient of the input of attention, [B, length, H], to `sum`, and
  // those of projections to the parameters'.
  void InputGradient(const LinearInput& input,
                     const ProjectionGradients& gradients, torch::Tensor* sum) {
    if (gradients.IsEmpty()) {
      return;
    }
    const torch::NoGradGuard no_grad;
    Variables weights;
    for (const torch::nn::Linear& projection : gradients.projections()) {
      const LinearInput weight = products().Weight(projection->weight);
      weights.push_back(weight.operand.defined() ? weight.operand
                                                 : weight.value.detach());
    }
    const torch::Tensor weight = torch::cat(weights);
    const torch::Tensor rows =
        TokenRows(input.operand.defined() ? input.operand : input.value);
    torch::Tensor sum_rows = TokenRows(*sum);
    torch::Tensor of_weight;
    ForEachSlice(rows.size(0), [&](int64_t begin, int64_t count) {
      const ProductGradients found = GradientsOfProduct(
          rows.narrow(0, begin, count), weight, gradients.Rows(begin, count));
      sum_rows.narrow(0, begin, count).add_(found.input);
      AddTo(&of_weight, found.weight);
    });
    const int64_t features = options().num_heads * options().head_size;
    for (size_t i = 0; i < gradients.projections().size(); ++i) {
      const torch::nn::Linear& projection = gradients.projections()[i];
      AddParameterGradient(
          projection->weight,
          of_weight.narrow(0, static_cast<int64_t>(i) * features, features));
      AddParameterGradient(projection->bias, gradients.Bias(i));
    }
  }

  void AddParameterGradient(const torch::Tensor& parameter,
                            const torch::Tensor& gradient) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].is_same(parameter)) {
        AddTo(&gradients_of_parameters_[i], gradient);
      }
    }
  }

  void AddParameterGradients(Variables::const_iterator first) {
    for (torch::Tensor& sum : gradients_of_parameters_) {
      AddTo(&sum, *first++);
    }
  }

  const std::shared_ptr<EtcEncoderLayerImpl> layer_;
  const HeadSlices head_slices_;
  const AttentionInputs attention_;
  const ResidualOptions residual_;
  const OutputRows rows_;
  const LayerSlices slices_;
  const LayerModes modes_;  // of the forward pass
  const Variables parameters_;
  std::vector<HeadGroup> groups_;
  std::optional<TensorFile> kept_longs_, kept_contexts_;
  // That the forward pass drew.
  bool has_seeds_ = false;
  std::vector<uint64_t> attention_seeds_;
  OfBoth<std::vector<uint64_t>> finish_seeds_;
  Variables gradients_of_parameters_;
};

class SlicedLayerFunction
    : public torch::autograd::Function<SlicedLayerFunction> {
 public:
  using Context = torch::autograd::AutogradContext;

  // `tensors` are both streams, the scores of all groups and the parameters.
  static Variables forward(Context* context,
                           const c10::intrusive_ptr<SlicedPass>& pass,
                           SlicedState* above, at::TensorList tensors) {
    Streams contexts;
    *above =
        pass->Forward({.longs = tensors[0], .globals = tensors[1]}, &contexts);
    Variables saved =
        pass->KeepInFiles(tensors[0], contexts.longs)
            ? Variables{torch::Tensor(), tensors[1], contexts.globals}
            : Variables{tensors[0], tensors[1], torch::Tensor()};
    // For LibTorch's check that they do not change before the backward pass.
    saved.insert(saved.end(), pass->parameters().begin(),
                 pass->parameters().end());
    context->save_for_backward(saved);
    context->set_materialize_grads(false);
    context->saved_data["pass"] = c10::IValue::make_capsule(pass);
    Variables results = {above->long_states, above->global_states};
    for (const ResidualScores& scores : above->scores) {
      const Variables of_group = ScoreTensors(scores);
      results.insert(results.end(), of_group.begin(), of_group.end());
    }
    return results;
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("layers in slices");
    const auto pass = c10::static_intrusive_pointer_cast<SlicedPass>(
        context->saved_data["pass"].toCapsule());
    Variables saved = context->get_saved_variables();
    std::vector<Variables> scores;
    for (size_t i = 2; i < gradients.size(); i += kBlocks) {
      const auto begin = gradients.begin() + static_cast<int64_t>(i);
      scores.emplace_back(begin, begin + kBlocks);
    }
    Streams contexts = {.globals = std::move(saved[2])};
    if (contexts.globals.defined()) {
      saved[0] = pass->KeptLongs();
      contexts.longs = pass->KeptContexts();
    }
    Variables results(2);  // of the pass and of `above`
    const Variables found = pass->Backward(
        {.longs = std::move(saved[0]), .globals = std::move(saved[1])},
        std::move(contexts),
        {.longs = std::move(gradients[0]), .globals = std::move(gradients[1])},
        scores);
    results.insert(results.end(), found.begin(), found.end());
    return results;
  }

  static constexpr int64_t kBlocks = 4;  // ScoreTensors
};

}  // namespace

SlicedState RunInSlices(const std::shared_ptr<EtcEncoderLayerImpl>& layer,
                        const SlicedState& below,
                        const AttentionInputs& attention,
                        const ResidualOptions& residual, const OutputRows& rows,
                        const LayerSlices& slices) {
  TORCH_CHECK(slices.heads >= 1 && slices.tokens >= 1,
              "slices of a layer should have at least 1 head and 1 token, but "
              "have ",
              slices.heads, " and ", slices.tokens);
  auto pass = c10::make_intrusive<SlicedPass>(layer, below, attention, residual,
                                              rows, slices);
  if (!torch::GradMode::is_enabled()) {
    Streams contexts;
    return pass->Forward(
        {.longs = below.long_states, .globals = below.global_states},
        &contexts);
  }
  Variables tensors = {below.long_states, below.global_states};
  for (const ResidualScores& scores : below.scores) {
    const Variables of_group = ScoreTensors(scores);
    tensors.insert(tensors.end(), of_group.begin(), of_group.end());
  }
  tensors.insert(tensors.end(), pass->parameters().begin(),
                 pass->parameters().end());
  SlicedState above;
  const Variables results =
      SlicedLayerFunction::apply(pass, &above, at::TensorList(tensors));
  above.long_states = results[0];
  above.global_states = results[1];
  for (size_t i = 0; i < above.scores.size(); ++i) {
    const auto begin = results.begin() + 2 +
                       static_cast<int64_t>(i) * SlicedLayerFunction::kBlocks;
    const ResidualScores& of_pass = above.scores[i];
    above.scores[i] =
        ScoresOf({begin, begin + SlicedLayerFunction::kBlocks}, of_pass.layers,
                 {.longs = of_pass.l2l.live(), .globals = of_pass.g2g.live()});
  }
  return above;
}

}  // namespace etc
