#ifndef ETC_TASKS_OPENKP_EXAMPLE_H_
#define ETC_TASKS_OPENKP_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "tasks/data/example.h"
#include "tasks/openkp/phrases.h"
#include "tasks/openkp/raw.h"
#include "tasks/openkp/visual_features.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The id of global tokens, the same with every vocabulary (doc/openkp.md 3.3).
inline constexpr int32_t kOpenkpGlobalToken = 1;

// The object "openkp" of a fine-tuning configuration: README.md has its fields.
// Absent ones keep their default, which is the published recipe with sound
// rules.
struct OpenkpOptions {
  InputOptions input = {};
  // 0: a global token for each element of the page; else one for each run of
  // this many long tokens, without elements (doc/openkp.md 3.7).
  int64_t fixed_block_length = 0;
  bool use_visual_features_in_long = true;
  bool use_visual_features_in_global = true;
  OpenkpVisualEmbeddingOptions visual = {};
  // Share of the target spread over all n-grams; at least 1e-6 is.
  double additive_smoothing_mass = 1e-4;
  // Different phrases for a document.
  int64_t max_phrases = 5;
  // Places that are looked at for them, the best ones first.
  int64_t max_positions = 100;
  // The official code's behaviour where it only hurts; the task's README has
  // the list.
  bool official_compatibility = false;

  // False where records may lack the layout of a page (VDOM).
  bool has_visual_features() const {
    return use_visual_features_in_long || use_visual_features_in_global;
  }
};

template <>
struct ConfigTable<OpenkpOptions> {
  using O = OpenkpOptions;
  static constexpr auto kFields = std::make_tuple(
      Field("additive_smoothing_mass", &O::additive_smoothing_mass,
            "share of the target spread over all n-grams", {.least = 0}),
      Field("use_visual_features_in_long", &O::use_visual_features_in_long,
            "long tokens have the features of their elements"),
      Field("use_visual_features_in_global", &O::use_visual_features_in_global,
            "global tokens have the features of their elements"),
      FieldsOf(&O::visual),
      Field("max_kp_predictions", &O::max_phrases, "phrases a page",
            DecodingCountFrom(1)),
      Field("max_position_predictions", &O::max_positions,
            "places of n-grams that are looked at for phrases",
            DecodingCountFrom(1)),
      Field("fixed_block_length", &O::fixed_block_length,
            "tokens for each global instead of elements; without visual "
            "features",
            CountFrom(0)),
      Field("official_compatibility", &O::official_compatibility,
            "reproduce the official program, its mistakes included (the task's "
            "page lists them)"));
};

// One document as the model reads it (doc/openkp.md 3): the pieces of its
// words, and a global token for each element of the page. There are no special
// tokens. A document without a single piece is given one [PAD] that belongs to
// no word.
struct OpenkpExample : Example {
  // All words of the document, of which the model reads the first ones.
  std::string text;
  // [L]: the word of each long token, counted from 0; -1 for none.
  std::vector<int32_t> long_words;
  // The words that the model reads; those without pieces count.
  int64_t num_words = 0;
  // [G], or empty with fixed blocks. The end of the last one may be cut off.
  std::vector<OpenkpElement> elements;
  // The key phrases that occur in the input, longer ones than the model can say
  // among them.
  std::vector<PhrasePosition> labels;
  // Absent if the record has no key phrases.
  std::optional<OpenkpReferences> references;
  // Losses by truncation.
  int64_t dropped_words = 0;

  int64_t TaskBytes() const override;
};

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_EXAMPLE_H_
