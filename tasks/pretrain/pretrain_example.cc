#include "tasks/pretrain/pretrain_example.h"

#include "tasks/data/example_source.h"

namespace etc {

int64_t PretrainExample::TaskBytes() const {
  const size_t numbers = masked_positions.capacity() +
                         masked_labels.capacity() + hidden_globals.capacity();
  return static_cast<int64_t>(sizeof(PretrainExample) - sizeof(Example) +
                              numbers * sizeof(int32_t)) +
         (targets == nullptr ? 0 : ExampleBytes(*targets));
}

}  // namespace etc
