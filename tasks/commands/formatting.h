#ifndef ETC_TASKS_COMMANDS_FORMATTING_H_
#define ETC_TASKS_COMMANDS_FORMATTING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace etc {

// "165 825 024"
std::string FormatCount(int64_t count);

// "1.5 GB", in powers of 1000.
std::string FormatBytes(double bytes);

// "0.25 s", "1.5 min", "12 h" or "3.5 days".
std::string FormatSeconds(double seconds);

// "[30522, 768]"
std::string FormatShape(const std::vector<int64_t>& shape);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_FORMATTING_H_
