#include "etc/weights/roberta_names.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace etc {
namespace {

struct Prefix {
  const char* bert;
  const char* roberta;
  bool only_of_texts;
};

// The first that fits decides.
constexpr Prefix kPrefixes[] = {
    {"bert.pooler.dense.", "classifier.dense.", true},
    {"classifier.", "classifier.out_proj.", true},
    {"bert.", "roberta.", false},
    {"cls.predictions.transform.dense.", "lm_head.dense.", false},
    {"cls.predictions.transform.LayerNorm.", "lm_head.layer_norm.", false},
    {"cls.predictions.", "lm_head.", false},
};

}  // namespace

std::string RobertaName(const std::string& name, bool classifies_texts) {
  for (const Prefix& prefix : kPrefixes) {
    absl::string_view rest = name;
    if ((classifies_texts || !prefix.only_of_texts) &&
        absl::ConsumePrefix(&rest, prefix.bert)) {
      return absl::StrCat(prefix.roberta, rest);
    }
  }
  return name;
}

}  // namespace etc
