#include "tasks/pretrain/examples/packed_example.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "tasks/inputs/example_writer.h"

namespace etc {

std::vector<int32_t> DrawHiddenSentences(int32_t num_sentences, double cpc_rate,
                                         Draws& draws) {
  if (num_sentences < 2 || cpc_rate <= 0) {
    return {};
  }
  const double expected = cpc_rate * static_cast<double>(num_sentences);
  const auto drawn =
      static_cast<int32_t>(std::min(std::floor(expected + draws.Uniform()),
                                    static_cast<double>(num_sentences)));
  const int32_t num_hidden =
      std::min(num_sentences - 1, std::max<int32_t>(1, drawn));
  std::vector<int32_t> hidden = draws.Permutation(num_sentences);
  hidden.resize(static_cast<size_t>(num_hidden));
  std::sort(hidden.begin(), hidden.end());
  return hidden;
}

void PackedExampleWriter::Written::AddSentence(const int32_t* ids, int64_t size,
                                               int32_t global_id,
                                               int32_t example_id) {
  const auto global = static_cast<int32_t>(example->global_token_ids.size());
  example->long_token_ids.insert(example->long_token_ids.end(), ids,
                                 ids + size);
  example->global_token_ids.push_back(global_id);
  sentences.insert(sentences.end(), static_cast<size_t>(size), global);
  long_examples.insert(long_examples.end(), static_cast<size_t>(size),
                       example_id);
  global_examples.push_back(example_id);
}

void PackedExampleWriter::Written::SetPattern(const PatternOptions& options) {
  example->long_type_ids.assign(example->long_token_ids.size(), kPlainLongType);
  example->global_type_ids.assign(example->global_token_ids.size(),
                                  kPlainGlobalType);
  example->pattern =
      PatternFromExampleIds(long_examples, global_examples, sentences, options);
}

PackedExampleWriter::PackedExampleWriter(const PackedExampleOptions* options)
    : options_(options) {}

void PackedExampleWriter::Add(const DocumentPart& part, Draws& hide,
                              Draws& mask) {
  PretrainExample& example = *context_.example;
  std::vector<uint8_t> hidden(part.sentence_ends.size(), 0);
  for (const int32_t sentence :
       DrawHiddenSentences(static_cast<int32_t>(part.num_sentences()),
                           options_->cpc_rate, hide)) {
    hidden[static_cast<size_t>(sentence)] = 1;
  }
  int64_t begin = 0;
  for (size_t s = 0; s < hidden.size(); ++s) {
    const int64_t size = part.sentence_ends[s] - begin;
    const int32_t* ids = part.pieces.ids.data() + begin;
    begin = part.sentence_ends[s];
    if (hidden[s] == 0) {
      context_.AddSentence(ids, size, options_->sentence_global_id, num_parts_);
      continue;
    }
    example.hidden_globals.push_back(
        static_cast<int32_t>(example.global_token_ids.size()));
    const std::vector<int32_t> masks(static_cast<size_t>(size),
                                     options_->mlm.mask_id);
    context_.AddSentence(masks.data(), size, options_->hidden_global_id,
                         num_parts_);
    targets_.AddSentence(ids, size,
                         options_->sentence_global_id, /*example_id=*/
                         static_cast<int32_t>(targets_.global_examples.size()));
  }
  MaskWords(part, hidden, mask);
  ++num_parts_;
}

void PackedExampleWriter::MaskWords(const DocumentPart& part,
                                    const std::vector<uint8_t>& hidden,
                                    Draws& draws) {
  PretrainExample& example = *context_.example;
  const int64_t offset = example.long_length() - part.pieces.size();
  MaskCandidates candidates;
  int64_t begin = 0;
  for (size_t s = 0; s < hidden.size(); ++s) {
    const int64_t end = part.sentence_ends[s];
    for (int64_t i = hidden[s] != 0 ? end : begin; i < end; ++i) {
      const auto position = static_cast<int32_t>(offset + i);
      if (options_->mlm.whole_words && i > begin &&
          part.pieces.continues_word[static_cast<size_t>(i)] != 0) {
        candidates.Join(position);
      } else {
        candidates.Add(position);
      }
    }
    begin = end;
  }
  const int64_t want = NumPredictions(
      static_cast<int64_t>(candidates.positions().size()), options_->mlm);
  const MaskedTokens masked = MaskTokens(candidates, want, options_->mlm, draws,
                                         example.long_token_ids);
  example.masks_wanted += masked.wanted;
  example.masked_positions.insert(example.masked_positions.end(),
                                  masked.positions.begin(),
                                  masked.positions.end());
  example.masked_labels.insert(example.masked_labels.end(),
                               masked.labels.begin(), masked.labels.end());
}

std::shared_ptr<PretrainExample> PackedExampleWriter::Finish() {
  context_.SetPattern(options_->pattern);
  if (!targets_.sentences.empty()) {
    targets_.SetPattern(options_->pattern);
    context_.example->targets = std::move(targets_.example);
  }
  return std::move(context_.example);
}

}  // namespace etc
