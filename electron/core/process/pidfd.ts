import { createRequire } from 'node:module';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';

/**
 * A handle on one process that a reused pid can't confuse: pidfd_open(2), pidfd_send_signal(2),
 * Linux 5.3. The numbers are the same on every architecture (asm-generic/unistd.h).
 */
const SYS_PIDFD_SEND_SIGNAL = 424;
const SYS_PIDFD_OPEN = 434;
const SIGKILL = 9;

export interface PidHandle extends Disposable {
  readonly pid: number;
  /** Sends SIGKILL to exactly the process this handle was opened on. ESRCH (already gone) is a success. */
  kill(): Result<void>;
}

interface Libc {
  readonly syscall: (number: number, ...args: unknown[]) => number;
  readonly close: (fd: number) => number;
  readonly errno: () => number;
  readonly codes: Readonly<Record<string, number>>;
}

let loaded: Result<Libc> | null = null;

function libc(): Result<Libc> {
  loaded ??= load();
  return loaded;
}

function load(): Result<Libc> {
  if (process.platform !== 'linux')
    return fail('not_supported', `Signals through a pidfd exist on Linux only; this is ${process.platform}.`);
  try {
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi');
    const library = koffi.load(null);
    const syscall = library.func('long syscall(long number, ...)');
    const close = library.func('int close(int fd)');
    return ok({
      syscall: (number, ...args) => Number(syscall(number, ...args)),
      close: (fd) => Number(close(fd)),
      errno: () => koffi.errno(),
      codes: koffi.os.errno,
    });
  } catch (thrown) {
    return fail(
      'not_supported',
      `koffi could not be loaded, so no process can be signalled safely: ${messageOf(thrown)}. Run npm ci again.`,
    );
  }
}

/** Opens a handle on the process that has this pid now. Prove its identity after opening, not before. */
export function openPid(pid: number): Result<PidHandle> {
  if (!Number.isInteger(pid) || pid <= 1) return fail('bad_input', `${pid} is not a process to signal.`);
  const calls = libc();
  if (!calls.ok) return calls;
  const { syscall, close, errno, codes } = calls.value;
  const fd = syscall(SYS_PIDFD_OPEN, 'int', pid, 'uint', 0);
  if (fd < 0) {
    const code = errno();
    if (code === codes.ESRCH) return fail('not_proven', `Process ${pid} is gone.`);
    if (code === codes.ENOSYS)
      return fail('not_supported', 'This kernel has no pidfd_open (it is older than Linux 5.3).');
    return fail('not_permitted', `Process ${pid} can't be opened (errno ${code}).`);
  }
  let open = true;
  return ok({
    pid,
    kill(): Result<void> {
      if (!open) return fail('internal', 'The handle is closed.');
      if (syscall(SYS_PIDFD_SEND_SIGNAL, 'int', fd, 'int', SIGKILL, 'void *', null, 'uint', 0) === 0)
        return ok(undefined);
      const code = errno();
      if (code === codes.ESRCH) return ok(undefined);
      if (code === codes.EPERM)
        return fail('not_permitted', `Process ${pid} belongs to another user; we may not signal it.`);
      return fail('internal', `pidfd_send_signal for ${pid} failed (errno ${code}).`);
    },
    [Symbol.dispose](): void {
      if (!open) return;
      open = false;
      close(fd);
    },
  });
}
