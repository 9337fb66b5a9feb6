#ifndef ETC_TASKS_NAMED_OUTPUTS_H_
#define ETC_TASKS_NAMED_OUTPUTS_H_

#include <string>
#include <vector>

namespace etc {

// A TaskHead whose `classifier` has outputs with a meaning that outlives the
// run: it is written with the weights, and weights to start from are matched
// with it.
class NamedOutputs {
 public:
  struct Meaning {
    // The label of each output; empty of a number, or if not known yet.
    std::vector<std::string> labels;
    // As HuggingFace calls it: "single_label_classification",
    // "multi_label_classification" or "regression".
    std::string problem_type;
    // A number is mean + deviation * output.
    double mean = 0;
    double deviation = 1;
  };

  virtual ~NamedOutputs() = default;
  virtual Meaning OutputMeaning() const = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_NAMED_OUTPUTS_H_
