import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** prctl(2). */
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/**
 * This process never outlives the one that started it. The channel closes when that one is gone; the
 * kernel's signal comes even while native code holds our only thread. SIGKILL, since a decode in
 * another thread would have `exit` wait for it or crash.
 */
export function endWithParent(): void {
  const end = (): void => void process.kill(process.pid, 'SIGKILL');
  process.on('disconnect', end);
  const parent = process.ppid;
  if (process.platform === 'linux') {
    try {
      const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
      const prctl = koffi
        .load(null)
        .func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)');
      prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    } catch {
      // The channel still tells.
    }
  }
  // It may have gone before the kernel was asked.
  if (process.ppid !== parent || !process.connected) end();
}

/** Between a desktop's programs and a model that can be loaded again, the kernel takes the model (proc(5), oom_score_adj). */
export function goFirstWhenMemoryIsShort(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '800');
  } catch {
    // Not Linux, or not permitted: the kernel goes by size alone then.
  }
}
