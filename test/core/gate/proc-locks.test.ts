import { describe, expect, it } from 'vitest';
import { readLockTable } from '../../../electron/core/gate/kernel-locks.ts';
import {
  deviceParts,
  kernelFileId,
  mergeKernelLocks,
  mountDevice,
  parseFdInfo,
  parseKernelLocks,
} from '../../../electron/core/gate/proc-locks.ts';

const TABLE = `1: POSIX  ADVISORY  WRITE 811 00:1a:901 0 EOF
2: FLOCK  ADVISORY  WRITE 4242 fe:00:2146399 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4250 fe:00:2146399 0 EOF
3: OFDLCK ADVISORY  READ  -1 08:01:8713209 128 191
4: FLOCK  ADVISORY  WRITE 0 103:12:77 0 EOF
5: LEASE  ACTIVE    READ  99 fe:00:2146399 0 EOF
`;

describe('several readings of a table that comes page by page', () => {
  const lock = (file: string, pid: number, waiting = false) => ({ file, pid, waiting });

  it('are one: what any has counts, newest first, and two who wait are two', () => {
    const merged = mergeKernelLocks([
      [lock('a', 2), lock('a', 7, true)],
      [lock('a', 1), lock('b', 3), lock('a', 7, true), lock('a', 7, true)],
    ]);
    expect(merged).toEqual([
      lock('a', 2),
      lock('a', 7, true),
      lock('a', 1),
      lock('b', 3),
      lock('a', 7, true),
    ]);
  });

  it('are made only where the table may be longer than a page', () => {
    const line = (index: number): string =>
      `${index}: FLOCK  ADVISORY  WRITE ${index} fe:00:${index} 0 EOF\n`;
    const page = (from: number, count: number): string =>
      Array.from({ length: count }, (_, index) => line(from + index)).join('');
    const texts = [page(1, 100), page(2, 100), page(3, 100), page(4, 100)];
    let reads = 0;
    const table = readLockTable(() => texts[reads++] ?? '');
    expect(reads).toBe(3);
    expect(table?.locks.map(({ pid }) => pid)).toContain(1);
    expect(table?.locks).toHaveLength(102);
    reads = 0;
    readLockTable(() => {
      reads += 1;
      return page(1, 10);
    });
    expect(reads).toBe(1);
  });
});

describe('the kernel’s table of locks', () => {
  it('gives the flocks alone, and tells who waits from who holds', () => {
    expect(parseKernelLocks(TABLE)).toEqual([
      { file: 'fe:00:2146399', pid: 4242, waiting: false },
      { file: 'fe:00:2146399', pid: 4250, waiting: true },
      { file: '103:12:77', pid: 0, waiting: false },
    ]);
  });

  it('gives nothing for what is no such table', () => {
    expect(parseKernelLocks('')).toEqual([]);
    expect(parseKernelLocks('FLOCK ADVISORY WRITE 1')).toEqual([]);
  });

  it('reads inode, mount and lock of a descriptor', () => {
    const text =
      'pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t2146399\nlock:\t1: FLOCK  ADVISORY  WRITE 15785 fe:00:2146399 0 EOF\n';
    expect(parseFdInfo(text)).toEqual({
      inode: 2146399,
      mountId: 27,
      flags: 0o2100002,
      locks: [{ file: 'fe:00:2146399', pid: 15785, waiting: false }],
    });
    expect(parseFdInfo('pos:\t0\n')).toEqual({ inode: null, mountId: null, flags: null, locks: [] });
  });

  it('names a file as the kernel does, by the mount’s device rather than stat’s', () => {
    const mounts = '27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:45 / /home rw - btrfs /dev/vdb rw\n';
    expect(mountDevice(mounts, 27)).toEqual({ major: 254, minor: 0 });
    expect(mountDevice(mounts, 28)).toEqual({ major: 0, minor: 45 });
    expect(mountDevice(mounts, 2)).toBeNull();
    expect(kernelFileId(254, 0, 2146399)).toBe('fe:00:2146399');
    expect(kernelFileId(259, 18, 77)).toBe('103:12:77');
  });

  it('takes a device number apart as glibc does', () => {
    expect(deviceParts(65024)).toEqual({ major: 254, minor: 0 });
    expect(deviceParts(0x10303)).toEqual({ major: 0x103, minor: 3 });
    expect(deviceParts(0x100801)).toEqual({ major: 8, minor: 0x101 });
  });
});
