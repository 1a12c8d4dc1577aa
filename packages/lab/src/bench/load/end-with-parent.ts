/**
 * Ends a child process when its parent has ended or has closed the channel between them.
 *
 * It ends by SIGKILL. `process.exit` waits for the compiler threads of V8, and such a thread may wait for a garbage collection
 * on the main thread, which never comes (nodejs/node#54918). A process that hangs like this also keeps the output of its
 * parent open. For the same reason a parent kills a child whose result it has, and does not wait until the child exits.
 */
export function endWithParent(): void {
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
