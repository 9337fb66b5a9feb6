#include "etc/weights/tokenizer_files.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/byte_level_files.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_json.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

// --- Names -------------------------------------------------------------------

struct VocabularyName {
  const char* type;
  const char* file;
};

// The model of XLM-RoBERTa, CamemBERT and mBART: rows of their checkpoints are
// not the ids of its pieces, which tokenizer.json alone says.
constexpr char kShiftedModel[] = "sentencepiece.bpe.model";

// Ours and BERT's, official ETC's (doc/formats.md 2.8), HuggingFace's.
constexpr VocabularyName kVocabularies[] = {
    {"wordpiece", "vocab.txt"},
    {"sentencepiece", "tokenizer.model"},
    {"wordpiece", "vocab_bert_uncased_english.txt"},
    {"sentencepiece", "vocab_gpt_for_etc.model"},
    {"sentencepiece", "spiece.model"},
    {"sentencepiece", kShiftedModel},
};

constexpr char kTokenizerJson[] = "tokenizer.json";
constexpr char kAddedTokens[] = "added_tokens.json";
constexpr char kSplitPunctuation[] = "split_punctuation";
// Official ETC's folder, whose name alone says so.
constexpr char kSplitPunctuationFolder[] = "etc_large_split_punctuation";
constexpr char kSentencePiece[] = "sentencepiece";
constexpr char kHuggingFace[] = "huggingface";
constexpr char kDictionary[] = "dictionary";

// Classes of transformers that are BERT's tokenizer under another name, without
// the suffix "Fast"; and classes whose behaviour tokenizer.json alone defines.
constexpr const char* kClasses[] = {
    "BertTokenizer",       "ConvBertTokenizer",
    "DistilBertTokenizer", "DPRContextEncoderTokenizer",
    "ElectraTokenizer",    "DPRQuestionEncoderTokenizer",
    "LayoutLMTokenizer",   "LxmertTokenizer",
    "MobileBertTokenizer", "SqueezeBertTokenizer",
};
constexpr const char* kGenericClasses[] = {"PreTrainedTokenizerFast",
                                           "TokenizersBackend"};

// Control pieces, which stand for no text. In a text they are text
// (doc/formats.md 4.5).
constexpr absl::string_view kControls[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                           "[MASK]"};

template <typename List>
bool Contains(const List& list, absl::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// A set of pieces, views of others' texts.
using PieceSet = absl::flat_hash_set<absl::string_view>;

// --- WordPiece ---------------------------------------------------------------

// A vocabulary with all statements about it.
struct WordPieceFiles {
  // One piece a line.
  std::string lines;
  TokenizerStatements statements;
  bool has_tokenizer_json = false;
};

absl::Status CheckClass(const WordPieceFiles& files) {
  const auto& stated = files.statements.tokenizer_class;
  if (!stated.has_value() ||
      Contains(kClasses, absl::StripSuffix(stated->value, "Fast")) ||
      (files.has_tokenizer_json && Contains(kGenericClasses, stated->value))) {
    return absl::OkStatus();
  }
  return UnsupportedTokenizer(
      stated->where, QuotedName(stated->value),
      "BertTokenizer (or a class that is the same under another name)");
}

// Views of the contents of added tokens, which must outlive the set.
PieceSet ContentsOf(const std::vector<StatedToken>& tokens) {
  PieceSet contents;
  for (const StatedToken& stated : tokens) {
    contents.insert(stated.token.content);
  }
  return contents;
}

// Checks that vocab.txt has the pieces of the tokenizer.json beside it, but for
// added ones at the end.
absl::Status CheckSamePieces(const std::string& vocabulary,
                             const std::vector<absl::string_view>& pieces,
                             const std::string& json_path,
                             const TokenizerJson& json) {
  const std::vector<absl::string_view> others =
      VocabularyLines(json.vocabulary);
  const auto quoted = [](const std::vector<absl::string_view>& list, size_t i) {
    return i < list.size() ? QuotedName(list[i]) : std::string("missing");
  };
  const PieceSet added = ContentsOf(json.statements.added_tokens);
  for (size_t i = 0; i < std::max(pieces.size(), others.size()); ++i) {
    const bool same = i < pieces.size()
                          ? i < others.size() && pieces[i] == others[i]
                          : added.contains(others[i]);
    if (!same) {
      return absl::InvalidArgumentError(absl::StrCat(
          vocabulary, ":", i + 1, ": the piece is ", quoted(pieces, i),
          ", but in ", json_path, ", which lies beside it, it is ",
          quoted(others, i), "; they should be the same vocabulary"));
    }
  }
  return absl::OkStatus();
}

// Puts added tokens that are not among the lines yet behind them.
absl::Status AppendAddedTokens(WordPieceFiles* files) {
  std::vector<StatedToken>& added = files->statements.added_tokens;
  std::sort(added.begin(), added.end(),
            [](const StatedToken& a, const StatedToken& b) {
              return a.token.id < b.token.id;
            });
  const std::vector<absl::string_view> pieces = VocabularyLines(files->lines);
  const PieceSet known(pieces.begin(), pieces.end());
  const auto size = static_cast<int64_t>(pieces.size());
  int64_t next = size;
  std::string appended;
  for (StatedToken& stated : added) {
    AddedToken& token = stated.token;
    const bool is_known = token.id < size;
    if (is_known && pieces[token.id] == token.content) {
      continue;
    }
    if (token.content.find_first_of("\r\n") != std::string::npos) {
      return InvalidArgument(stated.where, ": the added token ",
                             QuotedName(token.content),
                             " has a line break, which a vocabulary of one "
                             "piece a line cannot have; a tokenizer.json can");
    }
    if (is_known || token.id != next || known.contains(token.content)) {
      return absl::InvalidArgumentError(
          absl::StrCat(stated.where, ": the added token ",
                       QuotedName(token.content), " has the id ", token.id,
                       is_known ? absl::StrCat(", which is that of ",
                                               QuotedName(pieces[token.id]))
                                : ", but should have one of the vocabulary, or "
                                  "the next one behind "
                                  "it"));
    }
    absl::StrAppend(&appended, token.content, "\n");
    token.outside = true;
    ++next;
  }
  if (next > size) {
    std::string lines;
    for (const absl::string_view piece : pieces) {
      absl::StrAppend(&lines, piece, "\n");
    }
    files->lines = lines + appended;
  }
  return absl::OkStatus();
}

// Gives special tokens without ids those that the vocabulary has.
absl::Status FindSpecialTokens(WordPieceFiles* files) {
  TokenizerStatements& all = files->statements;
  if (all.special_tokens.empty()) {
    return absl::OkStatus();
  }
  absl::flat_hash_map<absl::string_view, int64_t> ids;
  int64_t line = 0;
  for (const absl::string_view piece : VocabularyLines(files->lines)) {
    // The first of equal pieces counts.
    ids.emplace(piece, line);
    ++line;
  }
  // Indices of added tokens by their contents.
  absl::flat_hash_map<std::string, size_t> added_tokens;
  for (size_t i = 0; i < all.added_tokens.size(); ++i) {
    added_tokens.emplace(all.added_tokens[i].token.content, i);
  }
  for (const Stated<std::string>& special : all.special_tokens) {
    const auto [known, is_new] =
        added_tokens.emplace(special.value, all.added_tokens.size());
    if (!is_new) {
      StatedToken& stated = all.added_tokens[known->second];
      if (!stated.has_flags) {
        stated.token.special = true;
        stated.token.normalized = false;
      }
      continue;
    }
    const auto piece = ids.find(special.value);
    if (piece == ids.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          special.where, " has ", QuotedName(special.value),
          ", which is no piece of the vocabulary: tokenizer.json, "
          "added_tokens.json or added_tokens_decoder should give its id"));
    }
    StatedToken added;
    added.token.id = piece->second;
    added.token.content = special.value;
    added.token.special = true;
    added.where = special.where;
    all.added_tokens.push_back(std::move(added));
  }
  return absl::OkStatus();
}

// Sets what follows from other statements where no file states it.
template <typename T>
void Imply(const T& value, const std::string& where,
           std::optional<Stated<T>>* stated) {
  if (!stated->has_value()) {
    *stated = Stated<T>{value, where};
  }
}

// Reads the vocabulary at `path` and all files beside it.
absl::StatusOr<WordPieceFiles> ReadWordPieceFiles(const std::string& path) {
  WordPieceFiles files;
  const bool is_json = absl::EndsWith(path, ".json");
  const std::string json_path =
      is_json ? path : FileBesideWeights(path, kTokenizerJson);
  if (!is_json) {
    ETC_ASSIGN_OR_RETURN(files.lines, ReadFile(path, kMostVocabularyBytes));
  }
  ETC_ASSIGN_OR_RETURN(files.statements, ReadWordPieceStatements(path));
  if (!json_path.empty()) {
    ETC_ASSIGN_OR_RETURN(TokenizerJson json, ReadTokenizerJson(json_path));
    if (!is_json) {
      ETC_RETURN_IF_ERROR(
          CheckSamePieces(path, VocabularyLines(files.lines), json_path, json));
    }
    files.lines = std::move(json.vocabulary);
    files.has_tokenizer_json = true;
    ETC_RETURN_IF_ERROR(AddStatements(json.statements, &files.statements));
    if (!json.has_normalizer) {
      const std::string where = json_path + ": normalizer";
      Imply(false, where, &files.statements.tokenize_chinese_chars);
      Imply(false, where, &files.statements.clean_text);
    }
  }
  if (const auto& stated = files.statements.tokenizer_class;
      stated.has_value()) {
    Imply(kHuggingFaceWordCodePoints, stated->where,
          &files.statements.max_word_code_points);
  }
  ETC_RETURN_IF_ERROR(CheckClass(files));
  ETC_RETURN_IF_ERROR(AppendAddedTokens(&files));
  ETC_RETURN_IF_ERROR(FindSpecialTokens(&files));
  return files;
}

template <typename T>
T ValueOr(const std::optional<Stated<T>>& stated, T otherwise) {
  return stated.has_value() ? stated->value : otherwise;
}

WordPieceOptions OptionsOf(const TokenizerStatements& statements) {
  WordPieceOptions options;
  options.lower_case = ValueOr(statements.lower_case, options.lower_case);
  if (statements.strip_accents.has_value()) {
    options.strip_accents = statements.strip_accents->value;
  }
  options.tokenize_chinese_chars = ValueOr(statements.tokenize_chinese_chars,
                                           options.tokenize_chinese_chars);
  options.clean_text = ValueOr(statements.clean_text, options.clean_text);
  options.max_word_code_points =
      ValueOr(statements.max_word_code_points, options.max_word_code_points);
  for (const StatedToken& stated : statements.added_tokens) {
    if (!Contains(kControls, stated.token.content)) {
      options.added_tokens.push_back(stated.token);
    }
  }
  return options;
}

// --- Capitals ----------------------------------------------------------------

// Returns true if lower-casing changes the piece. A capital without a lower
// case, as in "\u211D", stands in lower-cased text as it is.
bool HasCapital(absl::string_view piece) {
  const auto size = static_cast<int32_t>(piece.size());
  for (int32_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT(piece.data(), at, size, c);
    if (c >= 0 && u_tolower(c) != c) {
      return true;
    }
  }
  return false;
}

// "[unused1]" and "<MASK>" stand for no text.
bool IsInBrackets(absl::string_view piece) {
  return piece.size() > 2 && ((piece.front() == '[' && piece.back() == ']') ||
                              (piece.front() == '<' && piece.back() == '>'));
}

// The pieces that lower-cased text never has.
std::vector<absl::string_view> PiecesWithCapitals(const WordPieceFiles& files) {
  const PieceSet added = ContentsOf(files.statements.added_tokens);
  std::vector<absl::string_view> found;
  for (const absl::string_view piece : VocabularyLines(files.lines)) {
    if (HasCapital(piece) && !IsInBrackets(piece) && !added.contains(piece)) {
      found.push_back(piece);
    }
  }
  return found;
}

// Makes the text of TokenizerFiles::capitals.
std::string CapitalsText(const WordPieceFiles& files,
                         const std::string& vocabulary) {
  if (files.statements.lower_case.has_value()) {
    return "";
  }
  const std::vector<absl::string_view> capitals = PiecesWithCapitals(files);
  return capitals.empty()
             ? ""
             : absl::StrCat(
                   vocabulary, " has ",
                   Counted(static_cast<int64_t>(capitals.size()), "piece"),
                   " with capitals, such as ", QuotedName(capitals.front()),
                   ", and no file beside it says do_lower_case");
}

// Sets the options by the statements. A vocabulary with capitals is taken for a
// cased one where no file says it.
void ObeyStatements(TokenizerFiles* tokenizer) {
  const TokenizerStatements& statements = tokenizer->statements;
  tokenizer->split_punctuation = ValueOr(statements.split_punctuation, false);
  if (tokenizer->type == kSentencePiece) {
    tokenizer->wordpiece.lower_case = false;
    return;
  }
  tokenizer->wordpiece = OptionsOf(statements);
  if (statements.lower_case.has_value()) {
    tokenizer->capitals.clear();
  } else if (!tokenizer->capitals.empty()) {
    tokenizer->wordpiece.lower_case = false;
  }
}

// Returns true if a tokenizer.json, beside the vocabulary or as it, says how it
// is used: there, accents that are not stated follow lower case.
bool HasTokenizerJson(const TokenizerFiles& tokenizer) {
  return tokenizer.type == kHuggingFace ||
         (tokenizer.type == "wordpiece" &&
          (absl::EndsWith(tokenizer.vocabulary, ".json") ||
           !FileBesideWeights(tokenizer.vocabulary, kTokenizerJson).empty()));
}

// --- Writing -----------------------------------------------------------------

// Returns whether no word has all of `piece` in it, at its beginning or, as
// "##...", behind it, so that it does not matter that it is a piece.
bool IsNoWord(absl::string_view piece) {
  absl::ConsumePrefix(&piece, "##");
  return std::any_of(piece.begin(), piece.end(), [](char c) {
    return absl::ascii_ispunct(static_cast<unsigned char>(c)) ||
           absl::ascii_isspace(static_cast<unsigned char>(c));
  });
}

// The lines up to the first added token that is outside of the vocabulary and
// could be cut out of a word if it stood there. Readers find the ids of the
// rest in the options.
std::string LinesToWrite(const WordPieceOptions& options,
                         const std::string& vocabulary) {
  int64_t kept = std::numeric_limits<int64_t>::max();
  PieceSet added;
  for (const AddedToken& token : options.added_tokens) {
    added.insert(token.content);
    if (token.outside && !IsNoWord(token.content)) {
      kept = std::min(kept, token.id);
    }
  }
  const std::vector<absl::string_view> lines = VocabularyLines(vocabulary);
  const auto size = static_cast<int64_t>(lines.size());
  if (kept >= size || !std::all_of(lines.begin() + kept, lines.end(),
                                   [&added](absl::string_view line) {
                                     return added.contains(line);
                                   })) {
    return vocabulary;
  }
  return absl::StrCat(absl::StrJoin(lines.begin(), lines.begin() + kept, "\n"),
                      "\n");
}

absl::StatusOr<TokenizerFiles> DescribeSentencePiece(
    const std::string& vocabulary) {
  if (std::filesystem::path(vocabulary).filename() == kShiftedModel) {
    return absl::UnimplementedError(absl::StrCat(
        vocabulary,
        " has other ids than checkpoints with a vocabulary of this name: use a "
        "tokenizer.json, as save_pretrained of a fast tokenizer writes it, or "
        "rename a model of your own"));
  }
  TokenizerFiles tokenizer{.type = kSentencePiece, .vocabulary = vocabulary};
  ETC_ASSIGN_OR_RETURN(TokenizerStatements statements,
                       ReadSentencePieceStatements(vocabulary));
  // RoBERTa's class is that of its vocab.json, beside which a model may lie.
  if (const auto& other = statements.tokenizer_class;
      other.has_value() &&
      absl::StripSuffix(other->value, "Fast") != "RobertaTokenizer") {
    return UnsupportedTokenizer(
        other->where, QuotedName(other->value),
        "a SentencePiece model without a class of its own, which gives text "
        "and ids as they are,");
  }
  if (statements.lower_case.has_value() && statements.lower_case->value) {
    return UnsupportedTokenizer(
        statements.lower_case->where, "true", "false",
        " beside a SentencePiece model, whose text is not folded");
  }
  const std::filesystem::path folder =
      std::filesystem::absolute(vocabulary).lexically_normal().parent_path();
  if (FileBesideWeights(vocabulary, kTokenizerConfigFile).empty() &&
      folder.filename() == kSplitPunctuationFolder) {
    Imply(true, folder.string(), &statements.split_punctuation);
  }
  tokenizer.statements = std::move(statements);
  ObeyStatements(&tokenizer);
  return tokenizer;
}

}  // namespace

std::vector<absl::string_view> VocabularyLines(absl::string_view contents) {
  absl::ConsumePrefix(&contents, kByteOrderMark);
  std::vector<absl::string_view> lines;
  while (!contents.empty()) {
    const size_t end = contents.find('\n');
    absl::string_view line = contents.substr(0, end);
    contents.remove_prefix(end == absl::string_view::npos ? contents.size()
                                                          : end + 1);
    while (absl::ConsumeSuffix(&line, "\r")) {
    }
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

std::string VocabularyFileName(const std::string& tokenizer_type) {
  return tokenizer_type == kSentencePiece ? "tokenizer.model"
         : tokenizer_type == kHuggingFace ? kTokenizerJson
         : tokenizer_type == kDictionary  ? "dict.txt"
                                          : "vocab.txt";
}

absl::StatusOr<std::string> ReadVocabulary(const std::string& type,
                                           const std::string& path) {
  if (type == kHuggingFace && !MergesOf(path).empty()) {
    ETC_ASSIGN_OR_RETURN(const nlohmann::json contents,
                         ReadTokenizerJsonOrByteLevel(path));
    return JsonText(contents);
  }
  if (type == kSentencePiece || type == kHuggingFace) {
    return ReadFile(path, kMostVocabularyBytes);
  }
  ETC_ASSIGN_OR_RETURN(WordPieceFiles files, ReadWordPieceFiles(path));
  return std::move(files.lines);
}

absl::StatusOr<TokenizerFiles> DescribeTokenizer(
    const std::string& type, const std::string& vocabulary) {
  if (type == kSentencePiece) {
    return DescribeSentencePiece(vocabulary);
  }
  if (absl::EndsWith(vocabulary, ".model")) {
    return absl::InvalidArgumentError(absl::StrCat(
        vocabulary, " is a SentencePiece model: tokenizer.type should be \"",
        kSentencePiece, "\", but is \"", type, "\""));
  }
  TokenizerFiles tokenizer{.type = type, .vocabulary = vocabulary};
  if (type == kHuggingFace) {
    ETC_RETURN_IF_ERROR(CheckTokenizerJsonModel(vocabulary));
    tokenizer.wordpiece.lower_case = false;
    return tokenizer;
  }
  ETC_ASSIGN_OR_RETURN(WordPieceFiles files, ReadWordPieceFiles(vocabulary));
  tokenizer.capitals = CapitalsText(files, vocabulary);
  tokenizer.statements = std::move(files.statements);
  ObeyStatements(&tokenizer);
  return tokenizer;
}

absl::StatusOr<TokenizerFiles> FindTokenizer(const std::string& path) {
  VocabularyName found = {"wordpiece", kTokenizerJson};
  for (const VocabularyName& name : kVocabularies) {
    if (!FileBesideWeights(path, name.file).empty()) {
      found = name;
      break;
    }
  }
  std::string vocabulary = FileBesideWeights(path, found.file);
  if (vocabulary.empty()) {
    absl::StatusOr<std::string> byte_level = FindByteLevelFiles(path);
    if (!byte_level.ok()) {
      return TokenizerFiles{.unsupported =
                                std::string(byte_level.status().message())};
    }
    if (byte_level->empty()) {
      return TokenizerFiles();
    }
    vocabulary = *std::move(byte_level);
    found.type = kHuggingFace;
  }
  absl::StatusOr<TokenizerFiles> tokenizer =
      DescribeTokenizer(found.type, vocabulary);
  const std::string json = FileBesideWeights(path, kTokenizerJson);
  if (absl::IsUnimplemented(tokenizer.status()) && !json.empty()) {
    tokenizer = DescribeTokenizer(kHuggingFace, json);
  }
  if (absl::IsUnimplemented(tokenizer.status())) {
    return TokenizerFiles{.unsupported =
                              std::string(tokenizer.status().message())};
  }
  return tokenizer;
}

absl::StatusOr<std::string> DictionaryBeside(const std::string& weights) {
  std::error_code error;
  const std::string folder = std::filesystem::is_directory(weights, error)
                                 ? weights
                                 : FolderOf(weights);
  const std::string joint = folder + "/dict.txt";
  ETC_ASSIGN_OR_RETURN(const bool has_joint, EntryExists(joint));
  if (has_joint) {
    return joint;
  }
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (absl::StartsWith(name, "dict.") && absl::EndsWith(name, ".txt") &&
        !entry->is_directory(ignored)) {
      paths.push_back(entry->path().string());
    }
  }
  if (error) {
    return ErrnoStatus(error.value(), "list", folder);
  }
  std::sort(paths.begin(), paths.end());
  std::string contents;  // of the first one
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(std::string lines,
                         ReadFile(path, kMostVocabularyBytes));
    if (path == paths.front()) {
      contents = std::move(lines);
    } else if (lines != contents) {
      return absl::InvalidArgumentError(absl::StrCat(
          paths.front(), " and ", path,
          " should be equal, the joint vocabulary of both languages, but "
          "differ"));
    }
  }
  return paths.empty() ? std::string() : paths.front();
}

absl::StatusOr<TokenizerFiles> FindTranslationTokenizer(
    const std::string& path, const std::string& type) {
  const std::string pieces =
      FileBesideWeights(path, VocabularyFileName(kSentencePiece));
  if (!pieces.empty() && type != kDictionary) {
    return TokenizerFiles{.type = kSentencePiece, .vocabulary = pieces};
  }
  ETC_ASSIGN_OR_RETURN(const std::string dictionary, DictionaryBeside(path));
  if (!dictionary.empty()) {
    return TokenizerFiles{.type = kDictionary, .vocabulary = dictionary};
  }
  return pieces.empty()
             ? TokenizerFiles()
             : TokenizerFiles{.type = kSentencePiece, .vocabulary = pieces};
}

absl::StatusOr<TokenizerFiles> DescribeTokenizerAt(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
  if (!is_directory && absl::EndsWith(path, "merges.txt")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " has the merges of a vocab.json, which is the vocabulary "
                     "to be named, or the directory of both"));
  }
  if (!is_directory && !MergesOf(path).empty()) {
    return DescribeTokenizer(kHuggingFace, path);
  }
  if (!is_directory) {
    absl::StatusOr<TokenizerFiles> tokenizer = DescribeTokenizer(
        absl::EndsWith(path, ".model") ? kSentencePiece : "wordpiece", path);
    return absl::IsUnimplemented(tokenizer.status()) &&
                   absl::EndsWith(path, ".json")
               ? DescribeTokenizer(kHuggingFace, path)
               : tokenizer;
  }
  ETC_ASSIGN_OR_RETURN(TokenizerFiles found, FindTokenizer(path));
  if (found.type.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " should have a vocabulary, but ",
        found.unsupported.empty() ? "has none" : found.unsupported));
  }
  return found;
}

absl::Status SetCase(bool lower_case, const std::string& source,
                     TokenizerFiles* tokenizer) {
  if (tokenizer->type == kSentencePiece || tokenizer->type == kHuggingFace) {
    return absl::OkStatus();
  }
  if (const auto& stated = tokenizer->statements.lower_case;
      stated.has_value() && stated->value != lower_case) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ", but ", stated->where, " is ",
                     stated->value ? "true" : "false",
                     ": leave out the former, or correct the file"));
  }
  tokenizer->wordpiece.lower_case = lower_case;
  tokenizer->case_is_given = true;
  return absl::OkStatus();
}

void TakeUnstated(const TokenizerFiles& source, TokenizerFiles* named) {
  if (named->type != source.type || HasTokenizerJson(*named)) {
    return;
  }
  const auto take = [&](auto TokenizerStatements::*member) {
    auto& stated = named->statements.*member;
    if (!stated.has_value()) {
      stated = source.statements.*member;
    }
  };
  take(&TokenizerStatements::lower_case);
  take(&TokenizerStatements::strip_accents);
  take(&TokenizerStatements::tokenize_chinese_chars);
  take(&TokenizerStatements::clean_text);
  take(&TokenizerStatements::max_word_code_points);
  take(&TokenizerStatements::split_punctuation);
  ObeyStatements(named);
}

void TakeUnstatedBeside(const std::string& weights, TokenizerFiles* named) {
  if (weights.empty()) {
    return;
  }
  const absl::StatusOr<TokenizerFiles> beside = FindTokenizer(weights);
  if (beside.ok()) {
    TakeUnstated(*beside, named);
  }
}

namespace {

// The names of the files that are read beside a vocabulary; they need not be
// there.
std::vector<std::string> NamesBesideVocabulary(const std::string& type,
                                               const std::string& vocabulary) {
  const std::string merges =
      std::filesystem::path(MergesOf(vocabulary)).filename().string();
  if (type == kDictionary || (type == kHuggingFace && merges.empty())) {
    return {};
  }
  if (type == kSentencePiece) {
    return {kTokenizerConfigFile};
  }
  if (type == kHuggingFace) {
    return {kTokenizerConfigFile, kAddedTokens, merges};
  }
  // A resumed run compares the files in this order.
  std::vector<std::string> names = {kTokenizerConfigFile,
                                    "special_tokens_map.json", kAddedTokens};
  if (!absl::EndsWith(vocabulary, ".json")) {
    names.insert(names.begin(), kTokenizerJson);
  }
  if (NamesTokenizerClass(vocabulary)) {
    names.emplace_back(kModelConfigFile);
  }
  return names;
}

}  // namespace

std::vector<std::string> FilesBesideVocabulary(const std::string& type,
                                               const std::string& vocabulary) {
  std::vector<std::string> paths;
  for (const std::string& name : NamesBesideVocabulary(type, vocabulary)) {
    std::string path = FileBesideWeights(vocabulary, name);
    if (!path.empty()) {
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

std::string TokenizerText(const TokenizerFiles& tokenizer) {
  if (tokenizer.type == kSentencePiece) {
    return tokenizer.split_punctuation ? "split at punctuation" : "";
  }
  if (tokenizer.type == kHuggingFace) {
    return "";
  }
  const WordPieceOptions& options = tokenizer.wordpiece;
  std::vector<std::string> parts = {options.lower_case ? "lower case"
                                                       : "cased"};
  if (options.strip_accents.value_or(options.lower_case) !=
      options.lower_case) {
    parts.emplace_back(options.lower_case ? "accents kept"
                                          : "accents stripped");
  }
  if (!options.tokenize_chinese_chars) {
    parts.emplace_back("ideographs not split");
  }
  if (!options.clean_text) {
    parts.emplace_back("controls kept");
  }
  if (!options.added_tokens.empty()) {
    parts.push_back(Counted(static_cast<int64_t>(options.added_tokens.size()),
                            "added token"));
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<std::string> TokenizerWarnings(const TokenizerFiles& tokenizer) {
  if (tokenizer.capitals.empty() ||
      (tokenizer.case_is_given && !tokenizer.wordpiece.lower_case)) {
    return {};
  }
  return {absl::StrCat(
      tokenizer.capitals, ": ",
      tokenizer.wordpiece.lower_case
          ? "text is folded to lower case, as asked for, so that they are "
            "never used"
          : "it is taken for a cased one, and text is not folded to lower "
            "case")};
}

absl::Status WriteTokenizer(const TokenizerFiles& tokenizer,
                            const std::string& vocabulary,
                            const std::string& directory) {
  if (tokenizer.type.empty()) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/", VocabularyFileName(tokenizer.type)),
      tokenizer.type == kSentencePiece || tokenizer.type == kHuggingFace
          ? vocabulary
          : LinesToWrite(tokenizer.wordpiece, vocabulary)));
  if (tokenizer.type == kHuggingFace) {
    return absl::OkStatus();
  }
  nlohmann::json options = nlohmann::json::object();
  if (tokenizer.type != kSentencePiece) {
    options =
        nlohmann::json::parse(WordPieceOptionsToJson(tokenizer.wordpiece));
    options["tokenizer_class"] = kClasses[0];
    options["max_input_chars_per_word"] =
        tokenizer.wordpiece.max_word_code_points;
    options["do_lower_case"] = tokenizer.wordpiece.lower_case;
  }
  options[kSplitPunctuation] = tokenizer.split_punctuation;
  return WriteFileAtomically(absl::StrCat(directory, "/", kTokenizerConfigFile),
                             JsonText(options, /*indent=*/2) + "\n");
}

}  // namespace etc
