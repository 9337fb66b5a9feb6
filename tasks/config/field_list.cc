#include "tasks/config/field_list.h"

#include <fnmatch.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "etc/config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

struct ModelField {
  absl::string_view name;
  absl::string_view type;
  absl::string_view meaning;
};

constexpr absl::string_view kWhole = TypeText<int64_t>();
constexpr absl::string_view kNumber = TypeText<double>();
constexpr absl::string_view kSwitch = TypeText<bool>();
constexpr absl::string_view kText = TypeText<std::string>();

// The object "model": what etc/config.h has, whose names a test compares.
constexpr ModelField kModelFields[] = {
    {"vocab_size", kWhole,
     "rows of the token table; if absent, those of `init` or the file "
     "`model.path`, else the pieces of the vocabulary"},
    {"segment_vocab_size", kWhole, "rows of the table of types"},
    {"embedding_size", kWhole,
     "width of the token table; null: `model.hidden_size`"},
    {"hidden_size", kWhole, "features of a token"},
    {"num_hidden_layers", kWhole, "layers"},
    {"num_attention_heads", kWhole, "heads of a layer"},
    {"local_radius", kWhole, "tokens that a long token sees to each side"},
    {"att_size_per_head", kWhole,
     "features of a head; null: `model.hidden_size` / "
     "`model.num_attention_heads`"},
    {"relative_pos_max_distance", kWhole,
     "largest distance with a relative id of its own; 0: no relative ids"},
    {"relative_vocab_size", kWhole, "rows of each table of relative ids"},
    {"max_absolute_position_embeddings", kWhole,
     "rows of each table of absolute positions; 0: no such tables"},
    {"intermediate_size", kWhole, "features within the feed-forward block"},
    {"hidden_act", kText,
     "`\"relu\"`, `\"gelu\"` (the tanh form), `\"gelu_erf\"`, `\"tanh\"` or "
     "`\"linear\"`"},
    {"hidden_dropout_prob", kNumber, "dropout of embeddings and blocks"},
    {"attention_probs_dropout_prob", kNumber, "dropout of attention weights"},
    {"initializer_range", kNumber,
     "standard deviation of random kernels and tables"},
    {"share_feed_forward_params", kSwitch,
     "long and global tokens have the same feed-forward block"},
    {"share_kv_projections", kSwitch,
     "the blocks of a softmax have the same keys and values"},
    {"share_qkv_projections", kSwitch,
     "long and global tokens have the same queries, keys and values"},
    {"share_att_output_projection", kSwitch,
     "long and global tokens have the same projection of attention's output"},
    {"use_hard_g2l_mask", kSwitch,
     "a global token sees the long tokens of its own sentence or paragraph "
     "only"},
    {"use_hard_l2g_mask", kSwitch,
     "a long token sees the global tokens of its own sentence or paragraph "
     "only"},
    {"grad_checkpointing_period", kWhole,
     "layers that backward computes again at a time; 0: none"},
    {"sublayer", kText,
     "`\"post_norm\"`, `\"pre_norm\"`, `\"rezero\"` or `\"admin\"`: how a "
     "layer adds its output ([formulas](model.md#41-residualblock)); a run "
     "from random weights sets the omegas of `\"admin\"` by its first "
     "micro-batch"},
    {"use_pre_activation_order", kSwitch,
     "the official name of `model.sublayer` `\"pre_norm\"` (true) and "
     "`\"post_norm\"`; where both are given, they must agree"},
    {"residual_attention", kText,
     "the mode where `residual_attention` is absent"},
    {"residual_gate_init", kNumber,
     "what the gates of `\"gate\"` begin with, unless `init` has gates; 0 "
     "computes what `\"off\"` does, 1 what `\"sum\"` does"},
    {"residual_decay", kNumber,
     "β of `\"decay\"`, between 0 and 1; 1 / βⁿ of the last layer must be "
     "below 10,000: β above 0.433 for 12 layers, 0.671 for 24"},
    {"layer_norm_epsilon", kNumber,
     "added to the variance by LayerNorms; RoBERTa's is 1e-5"},
    {"has_long_tokens", kSwitch,
     "false: BERT, whose tokens are all global; keeps a BERT in `init` from "
     "being lifted"},
    {"final_layer_norm", kSwitch,
     "a LayerNorm behind the last layer, with `\"pre_norm\"`"},
    {"depth_scaled_initializer", kSwitch,
     "kernels that write into the residual stream begin smaller, as in "
     "GPT-2"}};

// The text of a number as people write it: 5e-5, 1, 0.1, 1048576.
std::string NumberText(double number) {
  std::array<char, 32> digits;  // enough for the shortest text of any double
  const std::to_chars_result written =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string text(digits.data(), written.ptr);
  return absl::StrReplaceAll(text, {{"e-0", "e-"}, {"e+0", "e"}, {"e+", "e"}});
}

std::string DefaultValueText(const Json& value) {
  if (value.is_array()) {
    return absl::StrCat(
        "[",
        absl::StrJoin(value, ", ",
                      [](std::string* text, const Json& element) {
                        absl::StrAppend(text, DefaultValueText(element));
                      }),
        "]");
  }
  return value.is_number_float() ? NumberText(value.get<double>())
                                 : JsonText(value);
}

std::string BoundsText(const FieldRule& rule) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view words,
                       const std::optional<double>& bound) {
    if (bound.has_value()) {
      parts.push_back(absl::StrCat(words, " ", NumberText(*bound)));
    }
  };
  add("at least", rule.least);
  add("more than", rule.above);
  add("at most", rule.most);
  add("less than", rule.below);
  if (!rule.one_of.empty()) {
    parts.push_back(
        absl::StrCat("\"", absl::StrJoin(rule.one_of, "\" or \""), "\""));
  }
  if (!rule.more_bounds.empty()) {
    parts.emplace_back(rule.more_bounds);
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<FieldDescription> DescribeModel() {
  const Json defaults = Json::parse(EtcConfigToJson(EtcConfig()));
  std::vector<FieldDescription> fields = {
      {.name = "model.preset",
       .type = std::string(kText),
       .default_value = "`\"\"`",
       .bounds = "",
       .meaning = "a published size: `\"base\"` or `\"large\"` of ETC; "
                  "`\"bert_small\"`, `\"bert_base\"`, `\"bert_large\"` or "
                  "`\"bert_xlarge\"` of BERT"},
      {.name = "model.path",
       .type = std::string(kText),
       .default_value = "`\"\"`",
       .bounds = "",
       .meaning = "an `etc_config.json` instead, or the configuration of a "
                  "BERT, which is not lifted then"}};
  for (const ModelField& field : kModelFields) {
    const auto value = defaults.find(std::string(field.name));
    fields.push_back({.name = absl::StrCat("model.", field.name),
                      .type = std::string(field.type),
                      .default_value = value == defaults.end()
                                           ? "`null`"
                                           : DefaultText(*value),
                      .bounds = "",
                      .meaning = std::string(field.meaning)});
  }
  return fields;
}

// The text of a link in doc/configuration.md and the file that it leads to, as
// a path from the root: "formulas (doc/model.md)". A text that the path begins
// with is left out.
std::string LinkText(absl::string_view text, absl::string_view target) {
  const std::string file(target.substr(0, target.find('#')));
  const std::string path = (std::filesystem::path("doc") /
                            (file.empty() ? "configuration.md" : file))
                               .lexically_normal()
                               .string();
  return absl::StartsWith(path, text) ? path
                                      : absl::StrCat(text, " (", path, ")");
}

// Markdown as a terminal shows it: without marks of code, links as LinkText.
std::string WithoutMarkdown(absl::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t open = text.find('[');
    const size_t middle = text.find("](", open);
    const size_t close = text.find(')', middle);
    const bool is_link = close != absl::string_view::npos &&
                         text.substr(open + 1, middle - open - 1).find('[') ==
                             absl::string_view::npos;
    if (!is_link) {
      // The first mark of those that are none.
      const size_t end =
          open == absl::string_view::npos ? text.size() : open + 1;
      absl::StrAppend(&plain, text.substr(0, end));
      text.remove_prefix(end);
      continue;
    }
    absl::StrAppend(&plain, text.substr(0, open),
                    LinkText(text.substr(open + 1, middle - open - 1),
                             text.substr(middle + 2, close - middle - 2)));
    text.remove_prefix(close + 1);
  }
  return absl::StrReplaceAll(plain, {{"`", ""}});
}

// Appends `text` in lines of at most 80 columns, each behind 4 spaces.
void AppendParagraph(absl::string_view text, std::string* lines) {
  constexpr size_t kColumns = 80;
  std::string line = "   ";
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() > 4 && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(lines, line, "\n");
      line = "   ";
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(lines, line, "\n");
}

}  // namespace

std::string DefaultText(const nlohmann::json& value) {
  return absl::StrCat("`", DefaultValueText(value), "`");
}

FieldDescription DescribeByRule(const std::string& name,
                                absl::string_view meaning,
                                const FieldRule& rule, absl::string_view type,
                                const std::string& default_value) {
  return {.name = name,
          .type = std::string(rule.type_text.empty() ? type : rule.type_text),
          .default_value = rule.default_text.empty()
                               ? default_value
                               : std::string(rule.default_text),
          .bounds = BoundsText(rule),
          .meaning = std::string(meaning),
          .words = {rule.one_of.begin(), rule.one_of.end()}};
}

std::vector<FieldDescription> ConfigFields() {
  std::vector<FieldDescription> fields;
  const RunConfig defaults;
  ForEachConfigField(defaults, [&](const std::string& name, const auto& field,
                                   const auto& value) {
    fields.push_back(DescribeField(name, field.meaning, field.rule, value));
    if (name == "task") {
      fields.back().default_value = "required";
    }
  });
  fields.push_back({.name = "grid",
                    .type = "object of lists",
                    .default_value = "`{}`",
                    .bounds = "",
                    .meaning = "several values for some of these fields: [a "
                               "run for each "
                               "combination](#a-grid-of-settings)"});
  for (FieldDescription& field : DescribeModel()) {
    fields.push_back(std::move(field));
  }
  return fields;
}

absl::StatusOr<std::vector<FieldDescription>> SelectFields(
    const std::vector<FieldDescription>& fields, const std::string& pattern) {
  const auto select = [&](auto is_meant) {
    std::vector<FieldDescription> selected;
    for (const FieldDescription& field : fields) {
      if (is_meant(field.name)) {
        selected.push_back(field);
      }
    }
    return selected;
  };
  std::vector<FieldDescription> selected = select([&](const std::string& name) {
    return name == pattern || absl::StartsWith(name, pattern + ".") ||
           fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
  if (selected.empty()) {
    selected = select([&](const std::string& name) {
      return absl::StrContains(name, pattern);
    });
  }
  if (!selected.empty()) {
    return selected;
  }
  // A field may be meant by its last name, too.
  std::vector<std::string> names;
  std::vector<std::string> last_names;
  for (const FieldDescription& field : fields) {
    names.push_back(field.name);
    last_names.push_back(field.name.substr(field.name.rfind('.') + 1));
  }
  std::string nearest = NearestName(pattern, names);
  if (nearest.empty()) {
    nearest = NearestName(pattern, last_names);
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no field \"", pattern, "\"",
      nearest.empty() ? "; `realetc fields` lists all"
                      : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

std::string FieldsAsText(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields) {
    absl::StrAppend(
        &text, field.name, field.task.empty() ? "" : " of " + field.task, "  (",
        field.type, "; ", field.default_value == "required" ? "" : "default ",
        WithoutMarkdown(field.default_value), field.bounds.empty() ? "" : "; ",
        WithoutMarkdown(field.bounds), ")\n");
    AppendParagraph(WithoutMarkdown(field.meaning), &text);
  }
  return text;
}

std::string FieldsAsMarkdown(const std::vector<FieldDescription>& fields,
                             absl::string_view without) {
  std::string rows;
  for (const FieldDescription& field : fields) {
    absl::StrAppend(&rows, "| `", absl::StripPrefix(field.name, without), "`",
                    field.task.empty() ? "" : " of `" + field.task + "`", " | ",
                    field.default_value, " | ", field.meaning, " |\n");
  }
  return rows;
}

std::string FieldsAsJson(const std::vector<FieldDescription>& fields) {
  auto json = nlohmann::ordered_json::array();
  for (const FieldDescription& field : fields) {
    json.push_back({{"name", field.name},
                    {"type", field.type},
                    {"default", WithoutMarkdown(field.default_value)},
                    {"bounds", WithoutMarkdown(field.bounds)},
                    {"meaning", WithoutMarkdown(field.meaning)}});
    if (!field.task.empty()) {
      json.back()["task"] = field.task;
    }
  }
  return JsonText(json, /*indent=*/2) + "\n";
}

}  // namespace etc
