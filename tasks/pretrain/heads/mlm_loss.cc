#include "tasks/pretrain/heads/mlm_loss.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/matrix_product.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

constexpr int64_t kMostSliceRows = 4096;

// A slice of the logits: rows and columns, ends exclusive.
struct LogitSlice {
  int64_t first_row, rows;
  int64_t first_column, columns;

  torch::Tensor Rows(const torch::Tensor& tensor) const {
    return tensor.narrow(0, first_row, rows);
  }
  torch::Tensor Columns(const torch::Tensor& tensor) const {
    return tensor.narrow(0, first_column, columns);
  }
};

// Slices by columns, and each of them by rows: the parts of a column then come
// together, and no sum over all rows waits for its end. Slices have at most
// `elements`, but at least one column of at most kMostSliceRows.
std::vector<LogitSlice> LogitSlicesOf(int64_t rows, int64_t columns,
                                      int64_t elements) {
  std::vector<LogitSlice> slices;
  const int64_t height = std::min(rows, kMostSliceRows);
  if (height == 0) {
    return slices;
  }
  const int64_t width =
      std::clamp<int64_t>(elements / height, 1, std::max<int64_t>(columns, 1));
  for (int64_t column = 0; column < columns; column += width) {
    for (int64_t row = 0; row < rows; row += height) {
      slices.push_back({.first_row = row,
                        .rows = std::min(height, rows - row),
                        .first_column = column,
                        .columns = std::min(width, columns - column)});
    }
  }
  return slices;
}

// Returns true if it is float32 on the CPU.
bool IsDoneByParts(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32;
}

// Calls function(begin, size) for parts of the indices of dimension `dim` of a
// slice. Float32 on the CPU goes in parts on several threads: LibTorch's own
// division among threads differs in the last bits from one number of threads to
// another (etc/nn/activation.cc).
void ForEachSlicePart(const torch::Tensor& slice, int64_t dim,
                      const std::function<void(int64_t, int64_t)>& function) {
  const int64_t count = slice.size(dim);
  if (!IsDoneByParts(slice)) {
    function(0, count);
    return;
  }
  constexpr int64_t kElements = int64_t{1} << 16;
  const int64_t across = std::max<int64_t>(1, slice.size(1 - dim));
  const int64_t size = std::max<int64_t>(1, kElements / across);
  const auto do_part = [&](int64_t task, float*) {
    const torch::NoGradGuard no_grad;
    const int64_t begin = task * size;
    function(begin, std::min(size, count - begin));
  };
  ForEachTask((count + size - 1) / size, /*floats=*/0, do_part);
}

// Running sums of the losses over the columns so far, [rows] each.
struct RunningLosses {
  torch::Tensor maximum;
  torch::Tensor sum;          // of exp(logit - maximum)
  torch::Tensor best;         // first column of the maximum
  torch::Tensor label_logit;  // 0 until its column has come

  static RunningLosses Of(int64_t rows, const torch::TensorOptions& floating,
                          const torch::TensorOptions& integer);

  RunningLosses Rows(int64_t begin, int64_t size) const;

  // Adds columns from `first_column` on, of all rows. Labels count from that
  // column. The logits become exp(logit - maximum), with the new maximum.
  void Add(const torch::Tensor& logits, const torch::Tensor& labels,
           int64_t first_column) const;
};

RunningLosses RunningLosses::Of(int64_t rows,
                                const torch::TensorOptions& floating,
                                const torch::TensorOptions& integer) {
  return {.maximum = torch::full(
              {rows}, -std::numeric_limits<double>::infinity(), floating),
          .sum = torch::zeros({rows}, floating),
          .best = torch::zeros({rows}, integer),
          .label_logit = torch::zeros({rows}, floating)};
}

RunningLosses RunningLosses::Rows(int64_t begin, int64_t size) const {
  return {maximum.narrow(0, begin, size), sum.narrow(0, begin, size),
          best.narrow(0, begin, size), label_logit.narrow(0, begin, size)};
}

void RunningLosses::Add(const torch::Tensor& logits,
                        const torch::Tensor& labels,
                        int64_t first_column) const {
  const auto [here, index] = logits.max(1);
  best.copy_(torch::where(here > maximum, index + first_column, best));
  const torch::Tensor inside = (labels >= 0) & (labels < logits.size(1));
  const torch::Tensor picked =
      logits.gather(1, labels.clamp(0, logits.size(1) - 1).unsqueeze(1))
          .squeeze(1);
  label_logit.copy_(torch::where(inside, picked, label_logit));
  const torch::Tensor larger = torch::maximum(here, maximum);
  sum.mul_((maximum - larger).exp_());
  sum.add_(logits.sub_(larger.unsqueeze(1)).exp_().sum(1));
  maximum.copy_(larger);
}

// Logarithms of the sums of exponentials of all rows' logits, and the losses.
struct LogSums {
  torch::Tensor log_sums;
  torch::Tensor losses;
};

LogSums FinishLosses(const RunningLosses& running) {
  const LogSums result = {torch::empty_like(running.sum),
                          torch::empty_like(running.sum)};
  const torch::Tensor rows = running.sum.unsqueeze(1);
  ForEachSlicePart(rows, 0, [&](int64_t begin, int64_t size) {
    const RunningLosses part = running.Rows(begin, size);
    const torch::Tensor log_sums = result.log_sums.narrow(0, begin, size);
    log_sums.copy_(part.sum.log() + part.maximum);
    result.losses.narrow(0, begin, size).copy_(log_sums - part.label_logit);
  });
  return result;
}

using MlmContext = torch::autograd::AutogradContext;
using MlmVariables = torch::autograd::variable_list;

// A factor in the precision of the products.
torch::Tensor RoundedFactor(const torch::Tensor& factor,
                            LinearPrecision precision) {
  return precision == LinearPrecision::kBfloat16 && IsDoneByParts(factor)
             ? ToBfloat16(factor)
             : factor;
}

struct MlmGradients {
  torch::Tensor hidden, table, bias;  // undefined if they are not needed
};

// Slices of logits, and their contributions to the gradients of the inputs.
class MlmDecoder {
 public:
  MlmDecoder(const torch::Tensor& hidden, const torch::Tensor& table,
             const torch::Tensor& bias, int64_t precision)
      : precision_(static_cast<LinearPrecision>(precision)),
        type_(hidden.scalar_type()),
        is_fast_(IsDoneByParts(hidden)),
        hidden_(RoundedFactor(hidden.detach().contiguous(), precision_)),
        table_(table.detach()),
        bias_(bias.detach()) {}

  // Exponentials of half precision are summed in float32.
  torch::ScalarType sum_type() const {
    return type_ == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  }

  // [rows, columns] of sum_type(); new.
  torch::Tensor Logits(const LogitSlice& slice) const {
    const torch::Tensor rows = slice.Rows(hidden_);
    const torch::Tensor columns =
        RoundedFactor(slice.Columns(table_), precision_).t();
    const torch::Tensor bias = slice.Columns(bias_);
    return (is_fast_ ? MatrixProduct(rows, columns, bias)
                     : torch::addmm(bias, rows, columns))
        .to(sum_type());
  }

  void AddGradients(const LogitSlice& slice, const torch::Tensor& logits,
                    MlmGradients* sums) const {
    if (sums->bias.defined()) {
      const torch::Tensor sum = slice.Columns(sums->bias);
      ForEachSlicePart(logits, 1, [&](int64_t begin, int64_t size) {
        sum.narrow(0, begin, size)
            .add_(logits.narrow(1, begin, size).sum(0).to(type_));
      });
    }
    const torch::Tensor factor = RoundedFactor(logits.to(type_), precision_);
    if (sums->hidden.defined()) {
      slice.Rows(sums->hidden)
          .add_(Product(factor,
                        RoundedFactor(slice.Columns(table_), precision_)));
    }
    if (sums->table.defined()) {
      slice.Columns(sums->table).add_(Product(factor.t(), slice.Rows(hidden_)));
    }
  }

 private:
  torch::Tensor Product(const torch::Tensor& a, const torch::Tensor& b) const {
    return is_fast_ ? MatrixProduct(a, b) : torch::mm(a, b);
  }

  const LinearPrecision precision_;
  const torch::ScalarType type_;
  const bool is_fast_;
  const torch::Tensor hidden_, table_, bias_;
};

// Inputs of a backward pass, [M] each.
struct MlmRows {
  torch::Tensor labels;
  torch::Tensor log_sums;
  torch::Tensor gradients;  // of the losses
};

// Results of RunningLosses for the first slices, exp(logit - maximum), with the
// maximum so far, [rows]: as many slices as fit `most_bytes`.
struct KeptSlices {
  int64_t most_bytes = 0;
  std::vector<torch::Tensor> exponentials = {}, maxima = {};

  void Add(const torch::Tensor& of_slice, const torch::Tensor& maximum) {
    bytes += static_cast<int64_t>(of_slice.nbytes());
    if (bytes <= most_bytes) {
      exponentials.push_back(of_slice);
      maxima.push_back(maximum.clone());
    }
  }

  int64_t bytes = 0;
};

// Makes logits of a slice (softmax - onehot) d loss. `maximum` is defined where
// they are exponentials already.
void LogitsToGradients(const LogitSlice& slice, const MlmRows& rows,
                       const torch::Tensor& maximum,
                       const torch::Tensor& logits) {
  ForEachSlicePart(logits, 0, [&](int64_t begin, int64_t size) {
    const auto part = [&](const torch::Tensor& of_rows) {
      return slice.Rows(of_rows).narrow(0, begin, size).unsqueeze(1);
    };
    const torch::Tensor gradient = part(rows.gradients);
    const torch::Tensor values = logits.narrow(0, begin, size);
    if (maximum.defined()) {
      values.mul_(
          (maximum.narrow(0, begin, size).unsqueeze(1) - part(rows.log_sums))
              .exp_()
              .mul_(gradient));
    } else {
      values.sub_(part(rows.log_sums)).exp_().mul_(gradient);
    }
    const torch::Tensor label = part(rows.labels) - slice.first_column;
    const torch::Tensor inside = (label >= 0) & (label < slice.columns);
    values.scatter_add_(1, label.clamp(0, slice.columns - 1),
                        gradient.neg() * inside.to(gradient.dtype()));
  });
}

class MlmLossFunction : public torch::autograd::Function<MlmLossFunction> {
 public:
  // Returns the losses and whether predictions are right.
  static MlmVariables forward(MlmContext* context, const torch::Tensor& hidden,
                              const torch::Tensor& table,
                              const torch::Tensor& bias,
                              const torch::Tensor& labels, int64_t precision,
                              int64_t slice_elements, int64_t kept_bytes) {
    const MlmDecoder decoder(hidden, table, bias, precision);
    const int64_t rows = hidden.size(0);
    const RunningLosses running = RunningLosses::Of(
        rows, hidden.options().dtype(decoder.sum_type()), labels.options());
    KeptSlices kept = {.most_bytes = kept_bytes};
    for (const LogitSlice& slice :
         LogitSlicesOf(rows, table.size(0), slice_elements)) {
      const torch::Tensor logits = decoder.Logits(slice);
      const torch::Tensor columns = slice.Rows(labels) - slice.first_column;
      ForEachSlicePart(logits, 0, [&](int64_t begin, int64_t size) {
        running.Rows(slice.first_row + begin, size)
            .Add(logits.narrow(0, begin, size), columns.narrow(0, begin, size),
                 slice.first_column);
      });
      kept.Add(logits, slice.Rows(running.maximum));
    }
    const auto [log_sums, losses] = FinishLosses(running);
    const torch::Tensor correct = running.best.eq(labels);
    context->save_for_backward({hidden, table, bias, labels, log_sums});
    context->saved_data["exponentials"] = kept.exponentials;
    context->saved_data["maxima"] = kept.maxima;
    context->saved_data["precision"] = precision;
    context->saved_data["slice_elements"] = slice_elements;
    context->mark_non_differentiable({correct});
    return {losses, correct};
  }

  static MlmVariables backward(MlmContext* context, MlmVariables gradients) {
    RefuseSecondGradients("the sliced loss of masked tokens",
                          "ComputeMlmLossesReference");
    const MlmVariables saved = context->get_saved_variables();
    const torch::Tensor &hidden = saved[0], &table = saved[1], &bias = saved[2];
    const auto zeros_if_needed = [&](size_t input, const torch::Tensor& like) {
      return context->needs_input_grad(input) ? torch::zeros_like(like)
                                              : torch::Tensor();
    };
    MlmGradients result = {.hidden = zeros_if_needed(0, hidden),
                           .table = zeros_if_needed(1, table),
                           .bias = zeros_if_needed(2, bias)};
    const MlmDecoder decoder(hidden, table, bias,
                             context->saved_data["precision"].toInt());
    const MlmRows rows = {.labels = saved[3],
                          .log_sums = saved[4],
                          .gradients = gradients[0].contiguous()};
    // They are overwritten: a second backward pass makes them again.
    const KeptSlices kept = TakeKept(context);
    size_t next = 0;
    for (const LogitSlice& slice :
         LogitSlicesOf(hidden.size(0), table.size(0),
                       context->saved_data["slice_elements"].toInt())) {
      const size_t i = next++;
      const bool is_kept = i < kept.exponentials.size();
      const torch::Tensor logits =
          is_kept ? kept.exponentials[i] : decoder.Logits(slice);
      LogitsToGradients(slice, rows, is_kept ? kept.maxima[i] : torch::Tensor(),
                        logits);
      decoder.AddGradients(slice, logits, &result);
    }
    return {result.hidden,   result.table,    result.bias,    torch::Tensor(),
            torch::Tensor(), torch::Tensor(), torch::Tensor()};
  }

 private:
  static KeptSlices TakeKept(MlmContext* context) {
    KeptSlices kept;
    const auto take = [&](const char* name, std::vector<torch::Tensor>* into) {
      const auto found = context->saved_data.find(name);
      if (found != context->saved_data.end()) {
        *into = found->second.toTensorVector();
        context->saved_data.erase(found);
      }
    };
    take("exponentials", &kept.exponentials);
    take("maxima", &kept.maxima);
    return kept;
  }
};

void CheckMlmInput(const MlmDecoderInput& input) {
  TORCH_CHECK(input.hidden.dim() == 2 && input.table.dim() == 2,
              "hidden should be [M, E] and table [V, E], but are ",
              input.hidden.sizes(), " and ", input.table.sizes());
  const int64_t vocabulary = input.table.size(0);
  ETC_CHECK_SHAPE(input.table, {vocabulary, input.hidden.size(1)});
  ETC_CHECK_SHAPE(input.bias, {vocabulary});
  ETC_CHECK_SHAPE(input.labels, {input.hidden.size(0)});
  TORCH_CHECK(input.hidden.is_floating_point() &&
                  input.table.scalar_type() == input.hidden.scalar_type() &&
                  input.bias.scalar_type() == input.hidden.scalar_type() &&
                  input.labels.scalar_type() == torch::kInt64,
              "hidden, table and bias should be of one floating dtype and "
              "labels int64, but are ",
              input.hidden.scalar_type(), ", ", input.table.scalar_type(), ", ",
              input.bias.scalar_type(), " and ", input.labels.scalar_type());
  // Elsewhere the check would stop the stream.
  if (input.labels.is_cpu() && input.labels.numel() > 0) {
    const int64_t lowest = input.labels.min().item<int64_t>();
    const int64_t highest = input.labels.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest < vocabulary, "labels should be in [0, ",
                vocabulary, "), but range from ", lowest, " to ", highest);
  }
}

int64_t SliceElements(const MlmDecoderInput& input,
                      const MlmDecoderOptions& options) {
  TORCH_CHECK(options.slice_bytes >= 0,
              "slice_bytes should be at least 0, but ", "is ",
              options.slice_bytes);
  constexpr int64_t kCpuBytes = int64_t{8} << 20;
  constexpr int64_t kOtherBytes = int64_t{128} << 20;
  const int64_t bytes = options.slice_bytes != 0 ? options.slice_bytes
                        : input.hidden.is_cpu()  ? kCpuBytes
                                                 : kOtherBytes;
  const int64_t size = input.hidden.scalar_type() == torch::kFloat64 ? 8 : 4;
  return bytes / size;
}

}  // namespace

MlmLosses ComputeMlmLosses(const MlmDecoderInput& input,
                           const MlmDecoderOptions& options) {
  CheckMlmInput(input);
  const bool has_gradient =
      torch::GradMode::is_enabled() &&
      (input.hidden.requires_grad() || input.table.requires_grad() ||
       input.bias.requires_grad());
  const MlmVariables result = MlmLossFunction::apply(
      input.hidden, input.table, input.bias, input.labels,
      static_cast<int64_t>(options.precision), SliceElements(input, options),
      has_gradient ? options.kept_bytes : 0);
  return {.losses = result[0], .correct = result[1]};
}

MlmLosses ComputeMlmLossesReference(const MlmDecoderInput& input) {
  CheckMlmInput(input);
  const torch::Tensor logits =  // [M, V]
      torch::matmul(input.hidden, input.table.t()) + input.bias;
  return {.losses = torch::log_softmax(logits, 1)
                        .gather(1, input.labels.unsqueeze(1))
                        .squeeze(1)
                        .neg(),
          .correct = std::get<1>(logits.max(1)).eq(input.labels)};
}

}  // namespace etc
