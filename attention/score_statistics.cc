#include "attention/score_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attention/attention_problem.h"
#include "attention/backends/reference/dense_attention.h"
#include "attention/entropy.h"
#include "attention/row_blocks.h"

namespace etc {
namespace {

double Ratio(double sum, int64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

// Adds up numbers on the device of the queries.
class StatisticsSums {
 public:
  StatisticsSums(const torch::Device& device, bool carries)
      : carries_(carries),
        sums_(torch::zeros(
            {kSums}, torch::TensorOptions(device).dtype(torch::kFloat64))),
        largest_(torch::zeros_like(sums_.narrow(0, 0, kBlocks))) {}

  void Add(const RowBlock& block) {
    const DenseAttentionInput& input = block.input;
    const torch::Tensor scores = DenseScores(input);
    const DenseLogits logits = DenseLogitsOf(input, scores);
    const torch::Tensor hidden = input.mask.logical_not().unsqueeze(1);
    const int64_t heads = scores.size(1);
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
      sums.push_back(Total(input.mask.narrow(-1, begin, count)) * heads);
      AddMoments(visible(scores), &sums);
      AddMoments(carries_ ? visible(input.previous) : torch::Tensor(), &sums);
      largest.push_back(
          count == 0 ? largest_[0].new_zeros({})
                     : visible(logits.scores).abs().max().to(torch::kFloat64));
    }
    const torch::Tensor p =
        DenseProbabilities(input, logits.logits).to(torch::kFloat64);
    sums.push_back(Total(input.mask.any(-1)) * heads);
    sums.push_back(EntropyOfWeights(p).sum());
    sums_ += torch::stack(sums);
    largest_ = torch::maximum(largest_, torch::stack(largest));
  }

  SoftmaxStatistics Result() const {
    const torch::Tensor all = torch::cat({sums_, largest_}).cpu();
    const double* next = all.data_ptr<double>();
    const double* largest = next + kSums;
    SoftmaxStatistics result;
    for (BlockStatistics* block : {&result.own, &result.other}) {
      const auto pairs = static_cast<int64_t>(*next++);
      block->new_scores = {
          .count = pairs, .sum = next[0], .sum_of_squares = next[1]};
      block->carried_scores = {.count = carries_ ? pairs : 0,
                               .sum = next[2],
                               .sum_of_squares = next[3]};
      next += 4;
      block->largest_score = *largest++;
    }
    result.entropy = {.rows = static_cast<int64_t>(next[0]), .sum = next[1]};
    return result;
  }

 private:
  static constexpr int64_t kBlocks = 2;
  // For each block a count and two sums of new and of carried scores; then the
  // rows and their entropy.
  static constexpr int64_t kSums = 5 * kBlocks + 2;

  // A float64 scalar. Rows first: LibTorch adds up one long row in as many
  // parts as there are threads.
  static torch::Tensor Total(const torch::Tensor& numbers) {
    return numbers.sum(-1, /*keepdim=*/false, torch::kFloat64).sum();
  }

  // The sum and the sum of squares; zeros if undefined.
  void AddMoments(const torch::Tensor& numbers,
                  std::vector<torch::Tensor>* sums) const {
    if (!numbers.defined()) {
      sums->insert(sums->end(), 2, sums_.new_zeros({}));
      return;
    }
    const torch::Tensor exact = numbers.to(torch::kFloat64);
    sums->push_back(Total(exact));
    sums->push_back(Total(exact * exact));
  }

  const bool carries_;
  torch::Tensor sums_;     // [kSums]
  torch::Tensor largest_;  // [kBlocks]
};

}  // namespace

double NumberMoments::mean() const { return Ratio(sum, count); }

double NumberMoments::standard_deviation() const {
  return std::sqrt(
      std::max(0.0, Ratio(sum_of_squares, count) - mean() * mean()));
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
  if (problem.pattern.runs != nullptr) {
    CheckRelativeTable(problem);
  }
  StatisticsSums sums(problem.operands.query.device(),
                      problem.previous.defined());
  RowBlocks(problem, /*heads=*/{}, rows).ForEach([&](const RowBlock& block) {
    sums.Add(block);
  });
  return sums.Result();
}

}  // namespace etc
