#ifndef ETC_TASKS_TRANSLATION_BLEU_H_
#define ETC_TASKS_TRANSLATION_BLEU_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/metrics.h"

namespace etc {

// The words that n-grams are made of.
enum class BleuTokens {
  // mteval-v13a, of raw text: ASCII punctuation is split off, entities such as
  // "&amp;" are resolved (doc/translation.md 8.2).
  k13a,
  // Text that is tokenised already, split at white space.
  kWhiteSpace,
};

// Variant of BLEU. The defaults are sacrebleu's (Post 2018).
struct BleuOptions {
  BleuTokens tokens = BleuTokens::k13a;
  // The precision of the j-th order without a match is 1 / (2^j n-grams)
  // ("exp"). False: such an order makes the score 0.
  bool smooth = true;
  bool lower_case = false;
  // "(\S)-(\S)" is replaced by "\1 ##AT##-##AT## \2" in hypotheses and
  // references, as Vaswani et al. (2017) did for English-German. Not for text
  // whose hyphens the tokenizer split. White-space tokens only.
  bool split_compounds = false;
};

// BLEU of tokenised text, as multi-bleu.perl and fairseq print it: white-space
// tokens, no smoothing (doc/translation.md 8.1).
BleuOptions TokenizedBleu(bool split_compounds = false);

// BLEU of a corpus (Papineni et al. 2002) with one reference a sentence:
//
//   score = 100 BP exp(mean of ln p_n over n = 1..4),  p_n = matches / totals
//   BP    = 1 if the hypotheses are no shorter than the references, else
//           exp(1 - reference_length / hypothesis_length)
//
// Matches are clipped by the counts in the sentence's reference. Hypotheses of
// fewer than four words in all score 0.
struct BleuScore {
  double score = 0;  // in [0, 100]
  // n-grams of the hypotheses, n = 1..4, that are in the references, and all.
  std::array<int64_t, 4> matches = {};
  std::array<int64_t, 4> totals = {};
  // p_n as it counts, smoothed; 0 for orders behind the first without n-grams.
  std::array<double, 4> precisions = {};
  double brevity_penalty = 0;
  // Words of all sentences.
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;
};

// Hypothesis i against reference i, each UTF-8 without a line feed.
//   kInvalidArgument  different numbers of sentences, or none; text that is not
//                     UTF-8; compounds split with other tokens than white space
absl::StatusOr<BleuScore> CorpusBleu(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::string>& references,
                                     const BleuOptions& options = {});

// BLEU of a file of translations, a line each, against a file of as many
// references. The empty line is a translation without words; a file that ends
// without a line feed has its last line all the same.
//   kNotFound         there is no such file
//   kInvalidArgument  the files have different numbers of lines, or none; a
//                     line that is not UTF-8, with its number; translations of
//                     which each line begins with its number and a tabulator
// and errors of TextFile.
absl::StatusOr<BleuScore> ScoreTranslationFiles(const std::string& hypotheses,
                                                const std::string& references,
                                                const BleuOptions& options);

// "bleu" in [0, 100], the main one, "precision_1" to "precision_4" in [0, 1],
// "brevity_penalty", and the words "hypothesis_length" and "reference_length".
Metrics BleuMetrics(const BleuScore& score);

// The variant in sacrebleu's form, without a version:
// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp". Split compounds, which
// sacrebleu does not have, are "tok:none+compounds".
std::string BleuSignature(const BleuOptions& options);

// ScoresToJson and FormatScoreTable (tasks/metrics.h) with the signature of the
// BLEU among the scores, as the field "signature" and as a last line; empty:
// there is none.
std::string ScoresToJson(const Metrics& scores, const std::string& signature);
std::string FormatScoreTable(const Metrics& scores,
                             const std::string& main_metric,
                             const std::string& signature);

// The text with words and punctuation apart, by single blanks.
std::string Tokenize13a(absl::string_view text);

// The text with compounds split (BleuOptions::split_compounds).
std::string SplitCompounds(absl::string_view text);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_BLEU_H_
