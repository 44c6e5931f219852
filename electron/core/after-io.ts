/**
 * Runs `work` once what this turn of the event loop has begun has gone out: a request just made waits
 * for its connection, which the loop looks at only when all else that is due has run. Two immediates,
 * since the first still runs before that look.
 */
export function afterIo(work: () => void): void {
  setImmediate(() => setImmediate(work));
}
