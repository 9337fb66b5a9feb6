#ifndef ETC_TASKS_DISTRIBUTED_BROKEN_PIPES_H_
#define ETC_TASKS_DISTRIBUTED_BROKEN_PIPES_H_

namespace etc {

// From now on SIGPIPE does not end this process, if nobody had taken it: c10d
// and Gloo write to sockets whose other end may have died.
void IgnoreBrokenPipes();

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_BROKEN_PIPES_H_
