#include "tasks/pretrain/examples/packed_source.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/shuffle.h"
#include "base/status_macros.h"

namespace etc {
namespace {

WindowOptions WindowOptionsOf(const PackedSourceOptions& options) {
  const int64_t max_long = options.packing.max_long;
  const auto longest =
      std::max<int64_t>(1, static_cast<int64_t>(options.max_sentence_share *
                                                static_cast<double>(max_long)));
  return {
      .max_tokens = static_cast<int32_t>(max_long),
      .max_sentences = static_cast<int32_t>(options.packing.max_global),
      .sentences = {.max_tokens = longest, .min_graceful = (longest + 1) / 2}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackedSource>> PackedSource::Open(
    std::shared_ptr<const TokenStore> store,
    const PackedSourceOptions& options) {
  std::unique_ptr<PackedSource> source(
      new PackedSource(std::move(store), options, WindowOptionsOf(options)));
  ETC_ASSIGN_OR_RETURN(
      const std::vector<SentenceRange> documents,
      SelectDocuments(*source->store_, options.corpus, &source->counts_));
  ETC_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                       MakeWindows(*source->store_, documents,
                                   source->window_options_, &source->counts_));
  source->Pack(windows);
  return source;
}

PackedSource::PackedSource(std::shared_ptr<const TokenStore> store,
                           const PackedSourceOptions& options,
                           WindowOptions windows)
    : store_(std::move(store)), options_(options), window_options_(windows) {}

void PackedSource::Pack(const std::vector<Window>& windows) {
  const uint64_t seed = options_.corpus.development ? 0 : options_.seed;
  SequencePacker packer(options_.packing);
  windows_.reserve(windows.size());
  const auto take = [&](const PackedSequence& sequence) {
    for (const int64_t member : sequence.members) {
      windows_.push_back(windows[static_cast<size_t>(member)]);
    }
    sequence_ends_.push_back(static_cast<int64_t>(windows_.size()));
  };
  for (const int64_t member : RandomOrder(
           static_cast<int64_t>(windows.size()),
           CombineSeeds(
               {seed, static_cast<uint64_t>(DrawPurpose::kWindowOrder)}))) {
    const Window& window = windows[static_cast<size_t>(member)];
    if (const auto sequence =
            packer.Add(member, window.num_tokens, window.num_sentences)) {
      take(*sequence);
    }
  }
  for (const PackedSequence& sequence : packer.Flush()) {
    take(sequence);
  }
  counts_.sequences = size();
}

std::pair<int64_t, int64_t> PackedSource::WindowsOf(int64_t sequence) const {
  return {
      sequence == 0 ? 0 : sequence_ends_.at(static_cast<size_t>(sequence) - 1),
      sequence_ends_.at(static_cast<size_t>(sequence))};
}

absl::StatusOr<Examples> PackedSource::Make(RecordRequest request) const {
  PackedExampleWriter writer(&options_.example);
  const auto [begin, end] = WindowsOf(request.record);
  for (int64_t w = begin; w < end; ++w) {
    const Window& window = windows_[static_cast<size_t>(w)];
    ETC_ASSIGN_OR_RETURN(const DocumentPart part,
                         ReadWindow(*store_, window, window_options_));
    const auto draws = [&](DrawPurpose purpose) {
      return KeyedDraws({request.key, static_cast<uint64_t>(window.first_token),
                         static_cast<uint64_t>(purpose)});
    };
    KeyedDraws hide = draws(DrawPurpose::kHiddenSentences);
    KeyedDraws mask = draws(DrawPurpose::kMaskedWords);
    writer.Add(part, hide, mask);
  }
  const std::shared_ptr<PretrainExample> example = writer.Finish();
  example->record_id = absl::StrCat("sequence ", request.record);
  return Examples{example};
}

}  // namespace etc
