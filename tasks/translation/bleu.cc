#include "tasks/translation/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/counted.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/data/text_file.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

constexpr int kOrders = 4;

// The characters of the class [\{-\~\[-\` -\&\(-\+\:-\@\/].
bool Is13aSeparator(char c) {
  return absl::ascii_ispunct(static_cast<unsigned char>(c))
             ? !absl::StrContains("',-.", absl::string_view(&c, 1))
             : c == ' ';
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}
bool IsPoint(char c) { return c == '.' || c == ','; }

// Replaces each pair of neighbours (a, b) with first(a) and second(b), from the
// left and without overlaps, by `front` a `middle` b `back`. Bytes stand for
// characters: all conditions are about ASCII, and a character of several bytes
// is no digit in any of them.
template <typename First, typename Second>
std::string ReplacePairs(absl::string_view text, First first, Second second,
                         absl::string_view front, absl::string_view back) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    if (at + 1 < text.size() && first(text[at]) && second(text[at + 1])) {
      absl::StrAppend(&result, front, text.substr(at, 1), " ",
                      text.substr(at + 1, 1), back);
      at += 2;
    } else {
      result.push_back(text[at++]);
    }
  }
  return result;
}

// Numbers words, so that n-grams are compared by numbers.
class WordNumbers {
 public:
  // The numbers of the words of a sentence.
  std::vector<int32_t> Of(absl::string_view text) {
    std::vector<int32_t> numbers;
    for (const absl::string_view word : SplitWhiteSpace(text)) {
      const auto next = static_cast<int32_t>(numbers_.size());
      numbers.push_back(
          numbers_.try_emplace(std::string(word), next).first->second);
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
};

// Counts of the n-grams of one order; unused places hold -1.
using NGram = std::array<int32_t, kOrders>;
using NGramCounts = std::map<NGram, int64_t>;

NGramCounts CountNGrams(const std::vector<int32_t>& words, int order) {
  NGramCounts counts;
  for (int64_t i = 0; i + order <= std::ssize(words); ++i) {
    NGram gram;
    gram.fill(-1);
    std::copy_n(words.begin() + i, order, gram.begin());
    ++counts[gram];
  }
  return counts;
}

void AddSentence(const std::vector<int32_t>& hypothesis,
                 const std::vector<int32_t>& reference, BleuScore* score) {
  score->hypothesis_length += std::ssize(hypothesis);
  score->reference_length += std::ssize(reference);
  for (int order = 1; order <= kOrders; ++order) {
    const NGramCounts wanted = CountNGrams(reference, order);
    for (const auto& [gram, count] : CountNGrams(hypothesis, order)) {
      score->totals[order - 1] += count;
      if (const auto found = wanted.find(gram); found != wanted.end()) {
        score->matches[order - 1] += std::min(count, found->second);
      }
    }
  }
}

// Computes the score of the counts.
void FinishScore(const BleuOptions& options, BleuScore* score) {
  const auto hypothesis = static_cast<double>(score->hypothesis_length);
  const auto reference = static_cast<double>(score->reference_length);
  score->brevity_penalty = hypothesis >= reference ? 1
                           : hypothesis == 0
                               ? 0
                               : std::exp(1 - reference / hypothesis);
  if (score->matches == std::array<int64_t, 4>{}) {
    return;
  }
  int orders = 0;
  double divisor = 1;
  double logarithms = 0;
  while (orders < kOrders && score->totals[orders] > 0) {
    double matches = static_cast<double>(score->matches[orders]);
    if (matches == 0 && options.smooth) {
      divisor *= 2;
      matches = 1 / divisor;
    }
    const double precision =
        matches / static_cast<double>(score->totals[orders]);
    score->precisions[orders] = precision;
    logarithms += std::log(precision);  // minus infinity makes the score 0
    ++orders;
  }
  if (orders == kOrders) {
    score->score =
        100 * score->brevity_penalty * std::exp(logarithms / kOrders);
  }
}

std::string Prepare(const std::string& text, const BleuOptions& options) {
  const std::string cased = options.lower_case ? LowerCase(text) : text;
  if (options.tokens == BleuTokens::k13a) {
    return Tokenize13a(StripWhiteSpace(cased));
  }
  return options.split_compounds ? SplitCompounds(cased) : cased;
}

absl::Status CheckUtf8(const std::vector<std::string>& texts,
                       absl::string_view what) {
  const auto bad =
      std::find_if_not(texts.begin(), texts.end(),
                       [](const std::string& text) { return IsUtf8(text); });
  return bad == texts.end()
             ? absl::OkStatus()
             : InvalidArgument(what, " ", bad - texts.begin() + 1,
                               " should be UTF-8, but is not");
}

absl::StatusOr<std::vector<std::string>> ReadTranslations(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<TextFile> file,
                       TextFile::Open(path));
  std::vector<std::string> lines;
  absl::string_view line;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const bool more, file->NextLine(&line));
    if (!more) {
      return lines;
    }
    if (!IsUtf8(line)) {
      return InvalidArgument(path, ":", file->line_number(),
                             ": should be UTF-8, but is not");
    }
    lines.emplace_back(line);
  }
}

// Refuses lines of `realetc translate --scores`, all of which begin with their
// number.
absl::Status CheckHasNoNumbers(const std::vector<std::string>& lines,
                               const std::string& path) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::StartsWith(lines[i], absl::StrCat(i + 1, "\t"))) {
      return absl::OkStatus();
    }
  }
  return InvalidArgument(path,
                         ": should have text alone, but each line begins with "
                         "its number and a tabulator: translate without "
                         "--scores");
}

}  // namespace

BleuOptions TokenizedBleu(bool split_compounds) {
  return {.tokens = BleuTokens::kWhiteSpace,
          .smooth = false,
          .split_compounds = split_compounds};
}

std::string Tokenize13a(absl::string_view text) {
  std::string line = absl::StrReplaceAll(text, {{"<skipped>", ""}});
  line = absl::StrReplaceAll(line, {{"-\n", ""}});
  line = absl::StrReplaceAll(line, {{"\n", " "}});
  for (const auto& [entity, character] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}) {
    line = absl::StrReplaceAll(line, {{entity, character}});
  }
  std::string spaced = " ";
  for (const char c : line) {
    if (Is13aSeparator(c)) {
      spaced += {' ', c, ' '};
    } else {
      spaced.push_back(c);
    }
  }
  spaced.push_back(' ');
  const auto is_no_digit = [](char c) { return !IsDigit(c); };
  spaced = ReplacePairs(spaced, is_no_digit, IsPoint, "", " ");
  spaced = ReplacePairs(spaced, IsPoint, is_no_digit, " ", "");
  spaced = ReplacePairs(
      spaced, IsDigit, [](char c) { return c == '-'; }, "", " ");
  return absl::StrJoin(SplitWhiteSpace(spaced), " ");
}

std::string SplitCompounds(absl::string_view text) {
  // The places of characters, and of the end.
  std::vector<int64_t> places = {0};
  std::vector<CodePoint> characters;
  for (int64_t at = 0; at < std::ssize(text); places.push_back(at)) {
    characters.push_back(NextCodePoint(text, &at));
  }
  std::string result;
  const int64_t count = std::ssize(characters);
  for (int64_t i = 0; i < count; ++i) {
    absl::StrAppend(&result, text.substr(places[i], places[i + 1] - places[i]));
    if (i + 2 < count && characters[i + 1] == '-' &&
        !IsPythonSpace(characters[i]) && !IsPythonSpace(characters[i + 2])) {
      absl::StrAppend(
          &result, " ##AT##-##AT## ",
          text.substr(places[i + 2], places[i + 3] - places[i + 2]));
      i += 2;
    }
  }
  return result;
}

absl::StatusOr<BleuScore> CorpusBleu(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::string>& references,
                                     const BleuOptions& options) {
  if (hypotheses.size() != references.size()) {
    return InvalidArgument(
        "there should be one reference for each hypothesis, but hypotheses: ",
        hypotheses.size(), ", references: ", references.size());
  }
  if (hypotheses.empty()) {
    return InvalidArgument("BLEU needs at least one sentence");
  }
  if (options.split_compounds && options.tokens != BleuTokens::kWhiteSpace) {
    return InvalidArgument(
        "compounds can be split in tokenised text only (white-space tokens)");
  }
  ETC_RETURN_IF_ERROR(CheckUtf8(hypotheses, "hypothesis"));
  ETC_RETURN_IF_ERROR(CheckUtf8(references, "reference"));
  WordNumbers numbers;
  BleuScore score;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    AddSentence(numbers.Of(Prepare(hypotheses[i], options)),
                numbers.Of(Prepare(references[i], options)), &score);
  }
  FinishScore(options, &score);
  return score;
}

absl::StatusOr<BleuScore> ScoreTranslationFiles(const std::string& hypotheses,
                                                const std::string& references,
                                                const BleuOptions& options) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> ours,
                       ReadTranslations(hypotheses));
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> theirs,
                       ReadTranslations(references));
  if (ours.size() != theirs.size()) {
    return InvalidArgument(
        "translations and references should have as many lines, but ",
        hypotheses, " has ", Counted(std::ssize(ours), "line"), ", ",
        references, " ", Counted(std::ssize(theirs), "line"));
  }
  if (ours.empty()) {
    return InvalidArgument(hypotheses, ": should have translations, but is ",
                           "empty");
  }
  ETC_RETURN_IF_ERROR(CheckHasNoNumbers(ours, hypotheses));
  return CorpusBleu(ours, theirs, options);
}

Metrics BleuMetrics(const BleuScore& score) {
  Metrics metrics = {{"bleu", score.score}};
  for (size_t i = 0; i < score.precisions.size(); ++i) {
    metrics.emplace_back(absl::StrCat("precision_", i + 1),
                         score.precisions[i]);
  }
  metrics.emplace_back("brevity_penalty", score.brevity_penalty);
  metrics.emplace_back("hypothesis_length",
                       static_cast<double>(score.hypothesis_length));
  metrics.emplace_back("reference_length",
                       static_cast<double>(score.reference_length));
  return metrics;
}

std::string BleuSignature(const BleuOptions& options) {
  return absl::StrCat("nrefs:1|case:", options.lower_case ? "lc" : "mixed",
                      "|eff:no|tok:",
                      options.tokens == BleuTokens::k13a ? "13a"
                      : options.split_compounds          ? "none+compounds"
                                                         : "none",
                      "|smooth:", options.smooth ? "exp" : "none");
}

std::string ScoresToJson(const Metrics& scores, const std::string& signature) {
  auto json = nlohmann::ordered_json::parse(ScoresToJson(scores));
  if (!signature.empty()) {
    json["signature"] = signature;
  }
  return JsonText(json);
}

std::string FormatScoreTable(const Metrics& scores,
                             const std::string& main_metric,
                             const std::string& signature) {
  const std::string table = FormatScoreTable(scores, main_metric);
  return signature.empty()
             ? table
             : absl::StrCat(table, "signature: ", signature, "\n");
}

}  // namespace etc
