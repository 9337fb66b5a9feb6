#include "attention/score_statistics.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/entropy.h"
#include "attention/row_blocks.h"

namespace etc {
namespace {

// The least variance of numbers that differ, over their mean square: that of
// equal ones is rounding of double.
constexpr double kLeastSpread = 1e-12;

double Ratio(double sum, int64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

// Adds up numbers on the device of the queries.
class StatisticsSums {
 public:
  StatisticsSums(const torch::Device& device, int64_t heads, bool carries)
      : carries_(carries),
        sums_(torch::zeros({kSums, heads}, torch::TensorOptions(device).dtype(
                                               torch::kFloat64))),
        largest_(sums_.new_zeros({kBlocks})) {}

  void Add(const RowBlock& block) {
    const DenseAttentionInput& input = block.input;
    const torch::Tensor scores = DenseScores(input);
    const DenseLogits logits = DenseLogitsOf(input, scores);
    const torch::Tensor hidden = input.mask.logical_not().unsqueeze(1);
    const int64_t keys = scores.size(3);
    std::vector<torch::Tensor> sums;
    std::vector<torch::Tensor> largest;
    for (const auto& [begin, count] :
         {std::pair(int64_t{0}, block.own_keys),
          std::pair(block.own_keys, keys - block.own_keys)}) {
      const auto visible = [&, begin = begin,
                            count = count](const torch::Tensor& numbers) {
        return numbers.narrow(-1, begin, count)
            .masked_fill(hidden.narrow(-1, begin, count), 0.0);
      };
      sums.push_back(
          TotalOfHeads(input.mask.narrow(-1, begin, count).unsqueeze(1)));
      AddMoments(visible(scores),
                 carries_ ? visible(input.previous) : torch::Tensor(), &sums);
      largest.push_back(
          count == 0 ? largest_[0].new_zeros({})
                     : visible(logits.scores).abs().max().to(torch::kFloat64));
    }
    const torch::Tensor p =
        DenseProbabilities(input, logits.logits).to(torch::kFloat64);
    sums.push_back(
        TotalOfHeads(input.mask.any(-1, /*keepdim=*/true).unsqueeze(1)));
    sums.push_back(EntropyOfWeights(p).sum(-1)[0]);
    sums_ += torch::stack(sums);
    largest_ = torch::maximum(largest_, torch::stack(largest));
  }

  SoftmaxStatistics Result() const {
    const torch::Tensor by_head = sums_.cpu();
    const torch::Tensor largest = largest_.cpu();
    const torch::Tensor all = by_head.sum(-1);
    int64_t row = 0;
    SoftmaxStatistics result;
    for (BlockStatistics* block : {&result.own, &result.other}) {
      const ScorePairMoments whole = MomentsOf(all, row);
      block->new_scores = whole.new_scores;
      block->carried_scores = carries_ ? whole.carried_scores : NumberMoments();
      for (int64_t head = 0; carries_ && head < by_head.size(1); ++head) {
        block->heads.push_back(
            MomentsOf(by_head.select(1, head).contiguous(), row));
      }
      block->largest_score = largest.data_ptr<double>()[row / kOfBlock];
      row += kOfBlock;
    }
    const double* rest = all.data_ptr<double>() + row;
    result.entropy = {.rows = static_cast<int64_t>(rest[0]), .sum = rest[1]};
    return result;
  }

 private:
  static constexpr int64_t kBlocks = 2;
  // For each block a count, two sums of new and of carried scores and that of
  // their products; then the rows and their entropy.
  static constexpr int64_t kOfBlock = 6;
  static constexpr int64_t kSums = kOfBlock * kBlocks + 2;

  // Returns the moments of the block that begins at element `row` of `sums`,
  // [kSums].
  static ScorePairMoments MomentsOf(const torch::Tensor& sums, int64_t row) {
    const double* next = sums.data_ptr<double>() + row;
    const auto pairs = static_cast<int64_t>(next[0]);
    return {.new_scores = {.count = pairs,
                           .sum = next[1],
                           .sum_of_squares = next[2]},
            .carried_scores = {.count = pairs,
                               .sum = next[3],
                               .sum_of_squares = next[4]},
            .sum_of_products = next[5]};
  }

  // [1, N or 1, n, keys] -> [N] float64. Rows first: LibTorch adds up one long
  // row in as many parts as there are threads.
  torch::Tensor TotalOfHeads(const torch::Tensor& numbers) const {
    return numbers.sum(-1, /*keepdim=*/false, torch::kFloat64)
        .sum(-1)[0]
        .expand({sums_.size(1)});
  }

  // Sums and sums of squares of both, and that of their products; zeros for
  // `carried` if that is undefined.
  void AddMoments(const torch::Tensor& scores, const torch::Tensor& carried,
                  std::vector<torch::Tensor>* sums) const {
    const torch::Tensor exact = scores.to(torch::kFloat64);
    sums->push_back(TotalOfHeads(exact));
    sums->push_back(TotalOfHeads(exact * exact));
    if (!carried.defined()) {
      sums->insert(sums->end(), 3, sums_.new_zeros({sums_.size(1)}));
      return;
    }
    const torch::Tensor below = carried.to(torch::kFloat64);
    sums->push_back(TotalOfHeads(below));
    sums->push_back(TotalOfHeads(below * below));
    sums->push_back(TotalOfHeads(exact * below));
  }

  const bool carries_;
  torch::Tensor sums_;     // [kSums, N]
  torch::Tensor largest_;  // [kBlocks]
};

}  // namespace

double NumberMoments::mean() const { return Ratio(sum, count); }

double NumberMoments::standard_deviation() const {
  return std::sqrt(
      std::max(0.0, Ratio(sum_of_squares, count) - mean() * mean()));
}

std::optional<double> ScorePairMoments::correlation() const {
  const auto variance = [](const NumberMoments& of) {
    const double square = Ratio(of.sum_of_squares, of.count);
    const double spread = square - of.mean() * of.mean();
    // Rounding of equal numbers.
    return spread > kLeastSpread * square ? spread : 0.0;
  };
  const double both = variance(new_scores) * variance(carried_scores);
  if (!(both > 0.0)) {
    return std::nullopt;
  }
  const double covariance = Ratio(sum_of_products, new_scores.count) -
                            new_scores.mean() * carried_scores.mean();
  return std::clamp(covariance / std::sqrt(both), -1.0, 1.0);
}

double EntropyStatistics::mean() const { return Ratio(sum, rows); }

double LayerStatistics::largest_score() const {
  return std::max({g2g.largest_score, g2l.largest_score, l2g.largest_score,
                   l2l.largest_score});
}

SoftmaxStatistics MeasureAttention(const SparseAttentionInput& input,
                                   const torch::Tensor& rows) {
  const torch::NoGradGuard no_grad;
  const AttentionProblem problem = MakeAttentionProblem(input);
  StatisticsSums sums(problem.operands.query.device(),
                      problem.operands.query.size(1),
                      problem.previous.defined());
  RowBlocks(problem, /*heads=*/{}, rows).ForEach([&](const RowBlock& block) {
    sums.Add(block);
  });
  return sums.Result();
}

}  // namespace etc
