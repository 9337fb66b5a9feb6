#ifndef ETC_BASE_PROCESS_END_H_
#define ETC_BASE_PROCESS_END_H_

namespace etc {

// Ends the process after it has written what is buffered of std::cout and of
// C's streams, for the end of a main(). Unlike return and std::exit, it runs no
// destructors of static objects and nothing of std::atexit, where LibTorch
// empties its table of operations: a quarter of the time of a short command.
// Under a sanitizer, which reports at the end, it is std::exit.
[[noreturn]] void EndProcess(int exit_code);

}  // namespace etc

#endif  // ETC_BASE_PROCESS_END_H_
