/**
 * The kernel's words on file locks, as pure functions: /proc/locks (proc_locks(5)) and the `lock:`
 * lines of /proc/<pid>/fdinfo/<fd> (proc_pid_fdinfo(5)), which have the same form.
 */
export interface KernelLock {
  /** `fe:00:2146399`: the file system's device, then the inode, as the kernel prints them. */
  readonly file: string;
  /** Who took it, which need not be who holds it now; 0: outside our pid namespace, or gone. */
  readonly pid: number;
  /** Waits for the lock above it. */
  readonly waiting: boolean;
}

const LINE = /^\s*\d+:\s+(->\s+)?FLOCK\s+\S+\s+\S+\s+(-?\d+)\s+([0-9a-f]+:[0-9a-f]+:\d+)\s/;

/** The flock entries; those of other kinds, which do not exclude a flock, are left out. */
export function parseKernelLocks(text: string): readonly KernelLock[] {
  return text.split('\n').flatMap((line) => {
    const found = LINE.exec(line);
    if (found?.[2] === undefined || found[3] === undefined) return [];
    return [{ file: found[3], pid: Number(found[2]), waiting: found[1] !== undefined }];
  });
}

/**
 * Several readings of one table as one, newest first: the kernel gives a long table page by page, and
 * an entry slips through between two pages when others before it go. One that any reading has counts.
 */
export function mergeKernelLocks(readings: readonly (readonly KernelLock[])[]): readonly KernelLock[] {
  const key = (lock: KernelLock): string => `${lock.file} ${lock.pid} ${lock.waiting}`;
  const merged: KernelLock[] = [];
  const most = new Map<string, number>();
  for (const reading of readings) {
    const count = new Map<string, number>();
    for (const lock of reading) {
      const times = (count.get(key(lock)) ?? 0) + 1;
      count.set(key(lock), times);
      if (times <= (most.get(key(lock)) ?? 0)) continue;
      most.set(key(lock), times);
      merged.push(lock);
    }
  }
  return merged;
}

export interface FdInfo {
  readonly inode: number | null;
  readonly mountId: number | null;
  /** Of the opening, as open(2) has them; null: not told. */
  readonly flags: number | null;
  readonly locks: readonly KernelLock[];
}

export function parseFdInfo(text: string): FdInfo {
  const field = (name: string): number | null => {
    const found = new RegExp(`^${name}:\\s*(\\d+)$`, 'm').exec(text);
    return found?.[1] === undefined ? null : Number(found[1]);
  };
  const locks = [...text.matchAll(/^lock:(.*)$/gm)].map((match) => match[1] ?? '').join('\n');
  const octal = /^flags:\s*0?([0-7]+)$/m.exec(text)?.[1];
  return {
    inode: field('ino'),
    mountId: field('mnt_id'),
    flags: octal === undefined ? null : Number.parseInt(octal, 8),
    locks: parseKernelLocks(locks),
  };
}

/** `254:0` of the mount in /proc/<pid>/mountinfo; null when it is not listed. */
export function mountDevice(
  mountinfo: string,
  mountId: number,
): { readonly major: number; readonly minor: number } | null {
  const found = new RegExp(`^${mountId} \\d+ (\\d+):(\\d+) `, 'm').exec(mountinfo);
  return found === null ? null : { major: Number(found[1]), minor: Number(found[2]) };
}

/** As the kernel's `%02x:%02x:%lu` has it. */
export function kernelFileId(major: number, minor: number, inode: number): string {
  const hex = (part: number): string => part.toString(16).padStart(2, '0');
  return `${hex(major)}:${hex(minor)}:${inode}`;
}

/** A device number of stat(2) in its parts, as glibc's gnu_dev_major and gnu_dev_minor take it apart. */
export function deviceParts(dev: number): { readonly major: number; readonly minor: number } {
  const low = dev % 2 ** 32;
  const high = Math.floor(dev / 2 ** 32);
  return {
    major: ((low >>> 8) & 0xfff) + (high & ~0xfff),
    minor: (low & 0xff) | ((low >>> 12) & 0xfff00),
  };
}
