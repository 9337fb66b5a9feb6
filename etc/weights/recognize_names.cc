#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

namespace etc {
namespace {

// The token table, by whose name a style is recognised.
struct Anchor {
  NameStyle style;
  const char* token_table;
  char separator;  // ends a prefix
};

constexpr Anchor kAnchors[] = {
    {NameStyle::kRealEtc, "embedding.token.weight", '.'},
    {NameStyle::kOfficialEtc, "token_emb_lookup/embedding_table", '/'},
    {NameStyle::kGoogleBert, "embeddings/word_embeddings", '/'},
    {NameStyle::kHuggingFace, "embeddings.word_embeddings.weight", '.'},
};

// The name as EncoderParameters spells it. Older HuggingFace files call the
// last component of LayerNorms as TensorFlow does (doc/formats.md 3.3).
std::string Respelt(NameStyle style, absl::string_view name) {
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  if (style != NameStyle::kHuggingFace || (last != "gamma" && last != "beta")) {
    return std::string(name);
  }
  name.remove_suffix(last.size());
  return absl::StrCat(name, last == "gamma" ? "weight" : "bias");
}

// Returns true for a tensor of an encoder-decoder, of ours or of fairseq's.
bool IsCrossAttention(absl::string_view name) {
  return absl::StartsWith(name, "decoder.layers.0.cross_attention.") ||
         absl::StartsWith(name, "decoder.layers.0.encoder_attn.");
}

absl::Status NotRecognized(const std::vector<std::string>& names,
                           const std::string& source) {
  if (std::find(names.begin(), names.end(), kObjectGraphKey) != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": an object-based TensorFlow 2 checkpoint, whose keys are paths of "
        "attributes; expected one with the names of variables, as TensorFlow 1 "
        "writes them"));
  }
  if (std::any_of(names.begin(), names.end(), IsCrossAttention)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source,
        ": a translation model, which has a decoder: expected an encoder; "
        "`realetc translate` runs such a model, or one that `realetc import` "
        "made of fairseq's"));
  }
  std::vector<std::string> tables;
  for (const Anchor& anchor : kAnchors) {
    tables.push_back(absl::StrCat(anchor.token_table, " (",
                                  NameStyleDescription(anchor.style), ")"));
  }
  const std::string first =
      names.empty() ? "none at all" : QuotedName(names.front());
  return absl::InvalidArgumentError(absl::StrCat(
      source, ": expected a token table called ", absl::StrJoin(tables, ", "),
      ", with or without a prefix, but found ", names.size(),
      " other tensors, the first ", first));
}

}  // namespace

std::string PlainName(const RecognizedNames& names, absl::string_view name) {
  absl::ConsumePrefix(&name, names.prefix);
  return Respelt(names.style, name);
}

absl::StatusOr<RecognizedNames> RecognizeNames(
    const std::vector<std::string>& names, const std::string& source) {
  RecognizedNames result;
  std::string found;
  for (const Anchor& anchor : kAnchors) {
    for (const std::string& name : names) {
      absl::string_view prefix = name;
      if (!absl::ConsumeSuffix(&prefix, anchor.token_table) ||
          !(prefix.empty() || prefix.back() == anchor.separator)) {
        continue;
      }
      if (!found.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(source, ": expected one token table, but found ",
                         QuotedName(found), " and ", QuotedName(name)));
      }
      found = name;
      result.style = anchor.style;
      result.prefix = std::string(prefix);
    }
  }
  if (found.empty()) {
    return NotRecognized(names, source);
  }
  for (const std::string& name : names) {
    // ETC's position tables may be outside of the model's scope (
    // doc/formats.md 3.1).
    const bool is_outside = result.style == NameStyle::kOfficialEtc &&
                            absl::StartsWith(name, "position_emb_lookup_");
    if (!absl::StartsWith(name, result.prefix) && !is_outside) {
      continue;
    }
    const auto [entry, is_new] =
        result.stored_as.emplace(PlainName(result, name), name);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": the tensors ", QuotedName(entry->second),
                       " and ", QuotedName(name), " are the same one twice"));
    }
  }
  return result;
}

absl::StatusOr<RecognizedNames> RecognizeNames(const TensorSource& tensors,
                                               const std::string& source) {
  absl::StatusOr<RecognizedNames> names =
      RecognizeNames(tensors.names(), source);
  if (!names.ok()) {
    if (auto all = RecognizeNames(tensors.NamesAndAliases(), source);
        all.ok()) {
      return all;
    }
  }
  return names;
}

}  // namespace etc
