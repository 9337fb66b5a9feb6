// A head is divided into parts, which run at the same time: parts of the
// queries where own keys have a window, else parts of the other keys, divided
// between packed documents where that is possible. Gradient rows that several
// parts add to are first summed in private memory of each part; afterwards, one
// head at a time, these sums are reduced in the order of the parts. The
// division of a head depends on sizes and the pattern only, so that the number
// of threads changes no bit of the result.

#include "attention/backends/cpu/backward_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/backends/cpu/kernels/attention_tile.h"
#include "attention/backends/cpu/query_tiles.h"
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

// Queries [begin, end), or keys.
struct TokenRange {
  KeyRun AsRun() const {
    return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
  }

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
  // Without a window: the smallest range of whole tiles that has all queries
  // which see keys of the part, and whether none of these sees keys of others.
  TokenRange seeing;
  bool is_alone = false;
  // With a window: the halo of own keys and values before and behind the part,
  // and all other keys and values.
  PrivateRows key_before, key_behind, value_before, value_behind;
  PrivateRows other_key, other_value;
  // Without a window, unless it is alone: the queries that see its keys.
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
    // Zeros of the same layout; rows that overlap have one of their own.
    const auto clear = [](torch::Tensor& tensor) {
      if (tensor.defined()) {
        const torch::Tensor source = tensor;
        tensor = torch::zeros_like(source);
        if (tensor.dim() > 0 && tensor.stride(-1) != 1 &&
            tensor.size(-1) != 1) {
          tensor = torch::zeros_like(source, at::MemoryFormat::Contiguous);
        }
      }
    };
    gradients_.ForEachTensor(clear);
    all_gradients_.gates.ForEachTensor(clear);
    Divide();
  }

  AttentionGradients Run() {
    if (parts_.empty()) {
      return all_gradients_;
    }
    ForEachTask(static_cast<int64_t>(parts_.size()),
                kernels::BackwardWorkspaceSize(HeadOf(problem_, 0, 0)),
                [&](int64_t task, float* workspace) {
                  RunPart(parts_[static_cast<size_t>(task)], workspace);
                });
    ForEachTask(sizes_.heads, 0, [&](int64_t head, float*) { Combine(head); });
    return all_gradients_;
  }

 private:
  // The tiles and parts of one example, and where the private memory of its
  // heads begins, one head after the other.
  struct Example {
    std::vector<QueryTile> tiles;
    std::vector<PartLayout> layouts;
    std::vector<int64_t> offsets;  // of the parts, in the memory of a head
    int64_t floats = 0;            // of a head
    int64_t memory = 0;
  };

  // A part of one head.
  struct Part {
    int64_t batch;
    int64_t head;
    int64_t number;
  };

  void Divide() {
    const int64_t heads = std::max<int64_t>(1, sizes_.batch * sizes_.heads);
    const int64_t wanted = (kParts + heads - 1) / heads;
    const int64_t most = (divided_ + kShortestPart - 1) / kShortestPart;
    const int64_t parts = std::max<int64_t>(1, std::min(wanted, most));
    const int64_t tile = TileLength(divided_, heads);
    const int64_t even = (divided_ + parts - 1) / parts;
    const int64_t length = std::max(tile, (even + tile - 1) / tile * tile);
    int64_t floats = 0;
    for (int64_t batch = 0; batch < sizes_.batch; ++batch) {
      Example example = {.tiles = QueryTiles(problem_, batch)};
      const std::vector<TokenRange> ranges = Divisions(example.tiles, length);
      for (const TokenRange& range : ranges) {
        AppendParts(batch, range,
                    ranges.size() == 1 ? length : PartLength(range, length),
                    &example);
      }
      for (const PartLayout& layout : example.layouts) {
        example.offsets.push_back(example.floats);
        example.floats += layout.floats;
      }
      example.memory = floats;
      floats += sizes_.heads * example.floats;
      const auto count = static_cast<int64_t>(example.layouts.size());
      for (int64_t n = 0; n < sizes_.heads * count; ++n) {
        parts_.push_back({batch, n / count, n % count});
      }
      examples_.push_back(std::move(example));
    }
    memory_ = torch::empty({floats}, problem_.operands.query.options());
  }

  // The tokens to divide, cut where an example is divided; but short pieces are
  // joined up to `length` tokens.
  std::vector<TokenRange> Divisions(const std::vector<QueryTile>& tiles,
                                    int64_t length) const {
    std::vector<int64_t> borders;
    if (!is_windowed_ && sizes_.own_keys == 0) {
      for (const QueryTile& tile : tiles) {
        if (tile.first_key > 0 && tile.first_key < divided_) {
          borders.push_back(tile.first_key);
        }
      }
    }
    borders.push_back(divided_);
    std::vector<TokenRange> ranges = {{}};
    for (const int64_t border : borders) {
      TokenRange& last = ranges.back();
      if (last.end > last.begin && border - last.begin > length) {
        ranges.push_back({last.end, border});
      } else {
        last.end = border;
      }
    }
    return ranges;
  }

  // Returns the length of equal parts of a range, nearest to `length`.
  static int64_t PartLength(const TokenRange& range, int64_t length) {
    const int64_t size = range.end - range.begin;
    const int64_t parts = std::max<int64_t>(1, (size + length / 2) / length);
    return std::max<int64_t>(1, (size + parts - 1) / parts);
  }

  // Appends the parts of a range, at most `length` tokens each.
  void AppendParts(int64_t batch, const TokenRange& range, int64_t length,
                   Example* example) const {
    int64_t begin = range.begin;
    do {
      PartLayout layout = {.begin = begin,
                           .end = std::min(begin + length, range.end)};
      if (!is_windowed_) {
        layout.seeing = SeeingQueries(batch, layout, example->tiles);
        layout.is_alone = range.end - range.begin <= length;
      }
      Place(&layout);
      example->layouts.push_back(layout);
      begin += length;
    } while (begin < range.end);
  }

  TokenRange SeeingQueries(int64_t batch, const PartLayout& layout,
                           const std::vector<QueryTile>& tiles) const {
    const SoftmaxRuns& runs =
        (*problem_.pattern.runs)[static_cast<size_t>(batch)];
    const auto sees = [&](int64_t i) {
      return SeesAny(runs.other.visible, i, layout.begin, layout.end) ||
             (layout.begin == 0 && sizes_.own_keys > 0 &&
              SeesAny(runs.own.visible, i, 0, sizes_.own_keys));
    };
    TokenRange seeing;
    for (const QueryTile& tile : tiles) {
      int64_t i = tile.begin;
      while (i < tile.end && !sees(i)) {
        ++i;
      }
      if (i < tile.end) {
        seeing = {.begin = seeing.end == 0 ? tile.begin : seeing.begin,
                  .end = tile.end};
      }
    }
    return seeing;
  }

  // Gives a part its private memory.
  void Place(PartLayout* layout) const {
    const auto place = [&](const TokenRange& rows, int64_t columns,
                           PrivateRows* to) {
      layout->Place(rows.begin, rows.end, columns, to);
    };
    if (is_windowed_) {
      const KeyWindow& window = problem_.pattern.window;
      const TokenRange before = {
          std::max<int64_t>(0, layout->begin - window.before), layout->begin};
      const TokenRange behind = {
          layout->end, std::min(divided_, layout->end + window.after)};
      place(before, sizes_.head_dim, &layout->key_before);
      place(behind, sizes_.head_dim, &layout->key_behind);
      place(before, sizes_.value_dim, &layout->value_before);
      place(behind, sizes_.value_dim, &layout->value_behind);
      place({0, sizes_.other_keys}, sizes_.head_dim, &layout->other_key);
      place({0, sizes_.other_keys}, sizes_.value_dim, &layout->other_value);
    } else if (!layout->is_alone) {
      place(layout->seeing, sizes_.head_dim, &layout->query);
    }
    if (problem_.operands.relative.embedding.defined()) {
      place({0, 2 * max_distance() + 4},
            kernels::RelativeGradientStride(sizes_.head_dim),
            &layout->relative);
    }
    if (problem_.gates.defined()) {
      place({0, 1}, 2, &layout->gates);
    }
  }

  int64_t max_distance() const {
    return (*problem_.pattern.runs)[0].max_distance;
  }

  const Example& ExampleOf(const Part& part) const {
    return examples_[static_cast<size_t>(part.batch)];
  }
  const PartLayout& LayoutOf(const Part& part) const {
    return ExampleOf(part).layouts[static_cast<size_t>(part.number)];
  }
  float* Memory(const Part& part) const {
    const Example& example = ExampleOf(part);
    return memory_.data_ptr<float>() + example.memory +
           part.head * example.floats +
           example.offsets[static_cast<size_t>(part.number)];
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

  void RunPart(const Part& part, float* workspace) {
    const PartLayout& layout = LayoutOf(part);
    float* const memory = Memory(part);
    std::fill(memory, memory + layout.floats, 0.0f);
    const kernels::AttentionHead attention =
        HeadOf(problem_, part.batch, part.head);
    const kernels::BackwardInputs inputs =
        is_windowed_
            ? Inputs(part, {0, sizes_.own_keys}, {0, sizes_.other_keys})
            : Inputs(part, {0, part.number == 0 ? sizes_.own_keys : int64_t{0}},
                     {layout.begin, layout.end});
    const kernels::BackwardResults results =
        is_windowed_ ? PartOfQueries(part) : PartOfKeys(part);
    for (const QueryTile& tile : ExampleOf(part).tiles) {
      if (!is_windowed_ ||
          (tile.begin >= layout.begin && tile.begin < layout.end)) {
        kernels::BackwardTile(attention, tile.begin, tile.end, inputs, results,
                              workspace);
      }
    }
  }

  kernels::BackwardInputs Inputs(const Part& part, const TokenRange& own,
                                 const TokenRange& other) const {
    const int64_t batch = part.batch;
    const int64_t head = part.head;
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

  kernels::BackwardResults SharedResults(const Part& part) const {
    const int64_t batch = part.batch;
    const int64_t head = part.head;
    const ScorePair& previous = input_.scores.previous;
    const PartLayout& layout = LayoutOf(part);
    kernels::BackwardResults results;
    results.relative = Memory(part) + layout.relative.offset;
    if (problem_.gates.defined()) {
      results.gates = Memory(part) + layout.gates.offset;
    }
    results.previous[0] = ScoreRowsToWrite(previous.own, batch, head);
    results.previous[1] = ScoreRowsToWrite(previous.other, batch, head);
    if (input_.scores.undo) {
      results.undone[0] = ScoreRowsToWrite(problem_.carried.own, batch, head);
      results.undone[1] = ScoreRowsToWrite(problem_.carried.other, batch, head);
    }
    return results;
  }

  kernels::BackwardResults PartOfQueries(const Part& part) const {
    const int64_t batch = part.batch;
    const int64_t head = part.head;
    const PartLayout& layout = LayoutOf(part);
    float* const memory = Memory(part);
    const auto own = [&](const torch::Tensor& gradient) {
      return Rows(gradient, batch, head, layout.begin, layout.end);
    };
    kernels::BackwardResults results = SharedResults(part);
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

  kernels::BackwardResults PartOfKeys(const Part& part) const {
    const int64_t batch = part.batch;
    const int64_t head = part.head;
    const PartLayout& layout = LayoutOf(part);
    kernels::BackwardResults results = SharedResults(part);
    results.query = {{layout.is_alone
                          ? Rows(gradients_.query, batch, head,
                                 layout.seeing.begin, layout.seeing.end)
                          : layout.query.In(Memory(part))}};
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
    for (const Part& part : parts_) {
      if (part.head == head) {
        CombinePart(part);
      }
    }
  }

  void CombinePart(const Part& part) {
    const PartLayout& layout = LayoutOf(part);
    const float* const memory = Memory(part);
    const auto add = [&](const PrivateRows& rows,
                         const torch::Tensor& gradient) {
      AddRows(rows, memory, HeadRows(gradient, part.batch, part.head),
              gradient.stride(2));
    };
    if (is_windowed_) {
      add(layout.key_before, gradients_.own_key);
      add(layout.key_behind, gradients_.own_key);
      add(layout.value_before, gradients_.own_value);
      add(layout.value_behind, gradients_.own_value);
      add(layout.other_key, gradients_.other_key);
      add(layout.other_value, gradients_.other_value);
    } else {
      add(layout.query, gradients_.query);
    }
    AddRelative(layout.relative, memory, part.head);
    if (problem_.gates.defined()) {
      const ResidualGates& gates = all_gradients_.gates;
      gates.own.data_ptr<float>()[part.head] += memory[layout.gates.offset];
      gates.other.data_ptr<float>()[part.head] +=
          memory[layout.gates.offset + 1];
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

  AttentionGradients all_gradients_;
  AttentionOperands& gradients_;
  std::vector<Example> examples_;
  std::vector<Part> parts_;  // of all heads
  torch::Tensor memory_;     // of all parts
};

}  // namespace

AttentionGradients RunBackwardPass(const BackwardPassInput& input) {
  return BackwardPass(input).Run();
}

}  // namespace etc
