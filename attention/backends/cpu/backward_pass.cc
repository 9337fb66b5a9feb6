// A head is divided into parts, which run at the same time: parts of the
// queries where own keys have a window, else parts of the other keys. Gradient
// rows that several parts add to are first summed in private memory of each
// part; afterwards, one head at a time, these sums are reduced in the order of
// the parts. The division of a head depends on sizes only, so that the number
// of threads changes no bit of the result.

#include "attention/backends/cpu/backward_pass.h"

#include <algorithm>
#include <vector>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// All heads together are divided into this many parts or more, if they are
// long enough: a few for each core, so that unequal parts even out.
constexpr int64_t kParts = 64;
// A part has no fewer tokens, so that borders stay a small share.
constexpr int64_t kShortestPart = 384;

// Rows [begin, end) of `columns` floats in the private memory of a part.
struct PrivateRows {
  int64_t offset = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t columns = 0;

  kernels::GradientRows In(float* memory) const {
    return {
        .rows = memory + offset, .stride = columns, .begin = begin, .end = end};
  }
};

// Queries [begin, end).
struct QueryRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns true if query i sees any of the keys [begin, end).
bool SeesAny(const RunSetTable& sets, int64_t i, int64_t begin, int64_t end) {
  const auto query = static_cast<size_t>(i);
  const auto last = sets.runs.begin() + sets.last[query];
  const auto run =
      std::partition_point(sets.runs.begin() + sets.first[query], last,
                           [&](const KeyRun& one) { return one.end <= begin; });
  return run != last && run->begin < end;
}

// A part, and the rows of gradients that it keeps in private memory.
struct PartLayout {
  // With a window the queries, and own keys, of the part, else its other keys.
  int64_t begin = 0;
  int64_t end = 0;
  // With a window: the halo of own keys and values before and behind the part,
  // and all other keys and values.
  PrivateRows key_before, key_behind, value_before, value_behind;
  PrivateRows other_key, other_value;
  // Without a window, if there are several parts: all queries, first of all.
  PrivateRows query;
  PrivateRows relative;
  PrivateRows gates;  // one row of two
  int64_t floats = 0;

  void Place(int64_t first, int64_t last, int64_t columns, PrivateRows* rows) {
    *rows = {.offset = floats, .begin = first, .end = last, .columns = columns};
    floats += (last - first) * columns;
  }
};

class BackwardPass {
 public:
  explicit BackwardPass(const BackwardPassInput& input)
      : problem_(input.problem),
        input_(input),
        sizes_(input.problem),
        is_windowed_(input.problem.pattern.window.is_restricted()),
        divided_(is_windowed_ ? sizes_.queries : sizes_.other_keys),
        all_gradients_(
            {.operands = input.problem.operands, .gates = input.problem.gates}),
        gradients_(all_gradients_.operands) {
    // Zeros of the same layout.
    const auto clear = [](torch::Tensor& tensor) {
      if (tensor.defined()) {
        tensor = torch::zeros_like(tensor);
      }
    };
    gradients_.ForEachTensor(clear);
    all_gradients_.gates.ForEachTensor(clear);
    Divide();
  }

  AttentionGradients Run() {
    const int64_t heads = sizes_.batch * sizes_.heads;
    if (heads == 0) {
      return all_gradients_;
    }
    const int64_t parts = static_cast<int64_t>(layouts_.size());
    ForEachTask(heads * parts,
                kernels::BackwardWorkspaceSize(HeadOf(problem_, 0, 0)),
                [&](int64_t task, float* workspace) {
                  RunPart(task / parts / sizes_.heads,
                          task / parts % sizes_.heads, task % parts, workspace);
                });
    ForEachTask(sizes_.heads, 0, [&](int64_t head, float*) { Combine(head); });
    return all_gradients_;
  }

 private:
  void Divide() {
    const int64_t heads = std::max<int64_t>(1, sizes_.batch * sizes_.heads);
    const int64_t wanted = (kParts + heads - 1) / heads;
    const int64_t most = (divided_ + kShortestPart - 1) / kShortestPart;
    const int64_t parts = std::max<int64_t>(1, std::min(wanted, most));
    const int64_t tile = TileLength(divided_, heads);
    const int64_t even = (divided_ + parts - 1) / parts;
    const int64_t length = std::max(tile, (even + tile - 1) / tile * tile);
    is_whole_ = length >= divided_;
    int64_t begin = 0;
    do {
      layouts_.push_back(Layout(begin, std::min(begin + length, divided_)));
      begin += length;
    } while (begin < divided_);
    floats_ = 0;
    for (const PartLayout& layout : layouts_) {
      offsets_.push_back(floats_);
      floats_ += layout.floats;
    }
    memory_ = torch::empty({sizes_.batch * sizes_.heads, floats_},
                           problem_.operands.query.options());
    if (!is_windowed_ && !is_whole_) {
      for (int64_t batch = 0; batch < sizes_.batch; ++batch) {
        for (size_t part = 0; part < layouts_.size(); ++part) {
          seeing_.push_back(SeeingQueries(batch, part));
        }
      }
    }
  }

  // The smallest range of whole tiles that has all queries which see keys of a
  // part: of a long row of short documents, a few of many.
  QueryRange SeeingQueries(int64_t batch, size_t part) const {
    const SoftmaxRuns& runs =
        (*problem_.pattern.runs)[static_cast<size_t>(batch)];
    const PartLayout& layout = layouts_[part];
    const auto sees = [&](int64_t i) {
      return SeesAny(runs.other.visible, i, layout.begin, layout.end) ||
             (part == 0 && sizes_.own_keys > 0 &&
              SeesAny(runs.own.visible, i, 0, sizes_.own_keys));
    };
    int64_t first = 0;
    while (first < sizes_.queries && !sees(first)) {
      ++first;
    }
    int64_t last = sizes_.queries;
    while (last > first && !sees(last - 1)) {
      --last;
    }
    if (first == last) {
      return {};
    }
    const int64_t tile =
        TileLength(sizes_.queries, sizes_.batch * sizes_.heads);
    return {.begin = first / tile * tile,
            .end = std::min((last + tile - 1) / tile * tile, sizes_.queries)};
  }

  const QueryRange& Seeing(int64_t batch, int64_t part) const {
    return seeing_[static_cast<size_t>(
        batch * static_cast<int64_t>(layouts_.size()) + part)];
  }

  // Zeros in the private memory of a part, but for rows of queries that see
  // none of its keys.
  void Clear(int64_t batch, int64_t head, int64_t part) {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    float* const memory = Memory(batch, head, part);
    const PrivateRows& query = layout.query;
    const int64_t behind_query =
        query.offset + (query.end - query.begin) * query.columns;
    if (behind_query > 0) {
      const QueryRange& seeing = Seeing(batch, part);
      std::fill(memory + seeing.begin * query.columns,
                memory + seeing.end * query.columns, 0.0f);
    }
    std::fill(memory + behind_query, memory + layout.floats, 0.0f);
  }

  PartLayout Layout(int64_t begin, int64_t end) const {
    PartLayout layout = {.begin = begin, .end = end};
    if (is_windowed_) {
      const KeyWindow& window = problem_.pattern.window;
      const int64_t before = std::max<int64_t>(0, begin - window.before);
      const int64_t behind = std::min(divided_, end + window.after);
      layout.Place(before, begin, sizes_.head_dim, &layout.key_before);
      layout.Place(end, behind, sizes_.head_dim, &layout.key_behind);
      layout.Place(before, begin, sizes_.value_dim, &layout.value_before);
      layout.Place(end, behind, sizes_.value_dim, &layout.value_behind);
      layout.Place(0, sizes_.other_keys, sizes_.head_dim, &layout.other_key);
      layout.Place(0, sizes_.other_keys, sizes_.value_dim, &layout.other_value);
    } else if (!is_whole_) {
      layout.Place(0, sizes_.queries, sizes_.head_dim, &layout.query);
    }
    if (problem_.operands.relative.embedding.defined() && sizes_.batch > 0) {
      layout.Place(0, 2 * max_distance() + 4,
                   kernels::RelativeGradientStride(HeadOf(problem_, 0, 0)),
                   &layout.relative);
    }
    if (problem_.gates.defined()) {
      layout.Place(0, 1, 2, &layout.gates);
    }
    return layout;
  }

  int64_t max_distance() const {
    return (*problem_.pattern.runs)[0].max_distance;
  }

  float* Memory(int64_t batch, int64_t head, int64_t part) const {
    return memory_.data_ptr<float>() + (batch * sizes_.heads + head) * floats_ +
           offsets_[static_cast<size_t>(part)];
  }

  // Rows [begin, end) of a gradient itself.
  static kernels::GradientRows Rows(const torch::Tensor& gradient,
                                    int64_t batch, int64_t head, int64_t begin,
                                    int64_t end) {
    return {
        .rows = HeadRows(gradient, batch, head) + begin * gradient.stride(2),
        .stride = gradient.stride(2),
        .begin = begin,
        .end = end};
  }

  void RunPart(int64_t batch, int64_t head, int64_t part, float* workspace) {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    Clear(batch, head, part);
    const kernels::AttentionHead attention = HeadOf(problem_, batch, head);
    const kernels::BackwardInputs inputs =
        is_windowed_
            ? Inputs(batch, head, {0, sizes_.own_keys}, {0, sizes_.other_keys})
            : Inputs(batch, head, {0, part == 0 ? sizes_.own_keys : int64_t{0}},
                     {layout.begin, layout.end});
    const kernels::BackwardResults results =
        is_windowed_ ? PartOfQueries(batch, head, part)
                     : PartOfKeys(batch, head, part);
    const int64_t first = is_windowed_ ? layout.begin : 0;
    const int64_t last = is_windowed_ ? layout.end : sizes_.queries;
    const int64_t tile =
        TileLength(sizes_.queries, sizes_.batch * sizes_.heads);
    for (int64_t begin = first; begin < last; begin += tile) {
      kernels::BackwardTile(attention, begin, std::min(begin + tile, last),
                            inputs, results, workspace);
    }
  }

  struct Keys {
    int64_t begin;
    int64_t end;
    KeyRun AsRun() const {
      return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
    }
  };

  kernels::BackwardInputs Inputs(int64_t batch, int64_t head, Keys own,
                                 Keys other) const {
    const ScorePair& carried = problem_.carried;
    const ScorePair& gradients = input_.scores.carried;
    return {.context = HeadRows(input_.context, batch, head),
            .context_stride = input_.context.stride(2),
            .row_max = VectorOfHead(input_.sums.row_max, batch, head),
            .row_inverse_sum =
                VectorOfHead(input_.sums.row_inverse_sum, batch, head),
            .carried = {ScoreRowsOf(carried.own, batch, head),
                        ScoreRowsOf(carried.other, batch, head)},
            .context_gradient = HeadRows(input_.context_gradient, batch, head),
            .context_gradient_stride = input_.context_gradient.stride(2),
            .carried_gradient = {ScoreRowsOf(gradients.own, batch, head),
                                 ScoreRowsOf(gradients.other, batch, head)},
            .keys = {own.AsRun(), other.AsRun()}};
  }

  kernels::BackwardResults SharedResults(int64_t batch, int64_t head,
                                         int64_t part) const {
    const ScorePair& previous = input_.scores.previous;
    kernels::BackwardResults results;
    results.relative = Memory(batch, head, part) +
                       layouts_[static_cast<size_t>(part)].relative.offset;
    if (problem_.gates.defined()) {
      results.gates = Memory(batch, head, part) +
                      layouts_[static_cast<size_t>(part)].gates.offset;
    }
    results.previous[0] = ScoreRowsToWrite(previous.own, batch, head);
    results.previous[1] = ScoreRowsToWrite(previous.other, batch, head);
    if (input_.scores.undo) {
      results.undone[0] = ScoreRowsToWrite(problem_.carried.own, batch, head);
      results.undone[1] = ScoreRowsToWrite(problem_.carried.other, batch, head);
    }
    return results;
  }

  kernels::BackwardResults PartOfQueries(int64_t batch, int64_t head,
                                         int64_t part) const {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    float* const memory = Memory(batch, head, part);
    const auto own = [&](const torch::Tensor& gradient) {
      return Rows(gradient, batch, head, layout.begin, layout.end);
    };
    kernels::BackwardResults results = SharedResults(batch, head, part);
    results.query = {{own(gradients_.query)}};
    results.key[0] = {{layout.key_before.In(memory), own(gradients_.own_key),
                       layout.key_behind.In(memory)}};
    results.value[0] = {{layout.value_before.In(memory),
                         own(gradients_.own_value),
                         layout.value_behind.In(memory)}};
    results.key[1] = {{layout.other_key.In(memory)}};
    results.value[1] = {{layout.other_value.In(memory)}};
    return results;
  }

  kernels::BackwardResults PartOfKeys(int64_t batch, int64_t head,
                                      int64_t part) const {
    const PartLayout& layout = layouts_[static_cast<size_t>(part)];
    kernels::BackwardResults results = SharedResults(batch, head, part);
    results.query = {
        {is_whole_ ? Rows(gradients_.query, batch, head, 0, sizes_.queries)
                   : layout.query.In(Memory(batch, head, part))}};
    results.key[0] = {
        {Rows(gradients_.own_key, batch, head, 0, sizes_.own_keys)}};
    results.value[0] = {
        {Rows(gradients_.own_value, batch, head, 0, sizes_.own_keys)}};
    results.key[1] = {
        {Rows(gradients_.other_key, batch, head, layout.begin, layout.end)}};
    results.value[1] = {
        {Rows(gradients_.other_value, batch, head, layout.begin, layout.end)}};
    return results;
  }

  // Adds the private sums of the parts of a head, of all batch entries.
  void Combine(int64_t head) {
    for (int64_t batch = 0; batch < sizes_.batch; ++batch) {
      for (size_t part = 0; part < layouts_.size(); ++part) {
        const PartLayout& layout = layouts_[part];
        const float* const memory =
            Memory(batch, head, static_cast<int64_t>(part));
        const auto add = [&](const PrivateRows& rows,
                             const torch::Tensor& gradient) {
          AddRows(rows, memory, HeadRows(gradient, batch, head),
                  gradient.stride(2));
        };
        if (is_windowed_) {
          add(layout.key_before, gradients_.own_key);
          add(layout.key_behind, gradients_.own_key);
          add(layout.value_before, gradients_.own_value);
          add(layout.value_behind, gradients_.own_value);
          add(layout.other_key, gradients_.other_key);
          add(layout.other_value, gradients_.other_value);
        } else if (!is_whole_) {
          const QueryRange& seeing = Seeing(batch, static_cast<int64_t>(part));
          PrivateRows seen = layout.query;
          seen.offset += seeing.begin * seen.columns;
          seen.begin = seeing.begin;
          seen.end = seeing.end;
          add(seen, gradients_.query);
        }
        AddRelative(layout.relative, memory, head);
        if (problem_.gates.defined()) {
          const ResidualGates& gates = all_gradients_.gates;
          gates.own.data_ptr<float>()[head] += memory[layout.gates.offset];
          gates.other.data_ptr<float>()[head] +=
              memory[layout.gates.offset + 1];
        }
      }
    }
  }

  static void AddRows(const PrivateRows& from, const float* memory, float* to,
                      int64_t stride) {
    for (int64_t r = from.begin; r < from.end; ++r) {
      const float* const row =
          memory + from.offset + (r - from.begin) * from.columns;
      for (int64_t c = 0; c < from.columns; ++c) {
        to[r * stride + c] += row[c];
      }
    }
  }

  void AddRelative(const PrivateRows& from, const float* memory, int64_t head) {
    for (int64_t c = from.begin; c < from.end; ++c) {
      const float* const row = memory + from.offset + c * from.columns;
      const int64_t id = kernels::RelativeIdOfColumn(c, max_distance());
      const RelativeTable& table = gradients_.relative;
      float* const embedding = table.embedding.data_ptr<float>() +
                               id * table.embedding.stride(0) +
                               head * table.embedding.stride(1);
      for (int64_t k = 0; k < sizes_.head_dim; ++k) {
        embedding[k] += row[k];
      }
      table.bias.data_ptr<float>()[id * table.bias.stride(0) + head] +=
          row[sizes_.head_dim];
    }
  }

  const AttentionProblem& problem_;
  const BackwardPassInput& input_;
  const AttentionSizes sizes_;
  const bool is_windowed_;
  const int64_t divided_;  // tokens that parts divide
  bool is_whole_ = false;  // whether a head is one part

  AttentionGradients all_gradients_;
  AttentionOperands& gradients_;
  std::vector<PartLayout> layouts_;
  std::vector<QueryRange> seeing_;  // [B, parts], if query rows are private
  std::vector<int64_t> offsets_;    // of the parts, in the memory of a head
  int64_t floats_ = 0;              // of a head
  torch::Tensor memory_;            // [B * N, floats_]
};

}  // namespace

AttentionGradients RunBackwardPass(const BackwardPassInput& input) {
  return BackwardPass(input).Run();
}

}  // namespace etc
