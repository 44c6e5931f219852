import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { kernelLogAccess } from '../../../electron/core/kernel-log/access.ts';
import { followKmsg } from '../../../electron/core/kernel-log/kmsg.ts';
import { followKernelLog, type KernelLog } from '../../../electron/core/kernel-log/source.ts';
import { until } from '../../support/router.ts';

let bin = '';
let log: KernelLog | null = null;
const path = process.env.PATH;
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'landlord-kernel-'));
  mkdirSync(bin, { recursive: true });
  process.env.PATH = `${bin}${delimiter}${path}`;
});
afterEach(() => {
  log?.stop();
  vi.unstubAllEnvs();
  process.env.PATH = path;
  rmSync(bin, { recursive: true, force: true });
});

function program(name: string, text: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
}

/** Follows a file in its place, to which something is written now and then. */
async function followsKmsg(): Promise<void> {
  const file = join(bin, 'kmsg');
  writeFileSync(file, '3,1,5,-;early\n');
  const messages: string[] = [];
  log = followKernelLog((message) => messages.push(message), file);
  const comes = (): boolean => {
    appendFileSync(file, '3,2,6,-;late\n');
    return messages.length > 0;
  };
  await until(comes, 20_000, 'a message');
  expect(new Set(messages)).toEqual(new Set(['late']));
}

it('follows the journal, read-only and from now on', async () => {
  program(
    'journalctl',
    `echo "$*" > ${bin}/args\nprintf '{"MESSAGE":"one"}\\n{"MESS'\nprintf 'AGE":"two"}\\n'\nexec sleep 60`,
  );
  const messages: string[] = [];
  log = followKernelLog((message) => messages.push(message));
  await until(() => messages.length === 2, 20_000, 'two messages');
  expect(messages).toEqual(['one', 'two']);
  expect(log.note()).toBeNull();
});

it('takes /dev/kmsg where the journal lets itself be followed and shows none of the kernel’s messages', async () => {
  program('journalctl', `case "$*" in *--follow*) exec sleep 60;; esac`);
  await followsKmsg();
});

it('reads the kernel’s own file without waiting in it: not what was there, and what comes later', async () => {
  const file = join(bin, 'kmsg');
  // Its times say nothing: their clock stands still in a suspend.
  writeFileSync(file, Array.from({ length: 2_000 }, (_, at) => `6,${at},9999999999${at},-;early\n`).join(''));
  const messages: string[] = [];
  const reader = followKmsg(file, (message) => messages.push(message));
  const comes = (): boolean => {
    appendFileSync(file, '4,9,5,-;amdgpu: ring gfx timeout\n SUBSYSTEM=pci\n');
    return messages.length > 0;
  };
  await until(comes, 10_000, 'what comes later');
  expect(new Set(messages)).toEqual(new Set(['amdgpu: ring gfx timeout']));
  reader?.stop();
  reader?.stop();
  expect(followKmsg(join(bin, 'none'), () => undefined)).toBeNull();
});

it('where it may be read is told without following it', async () => {
  program('journalctl', `printf '{"MESSAGE":"Linux version"}\\n'`);
  expect(await kernelLogAccess()).toBe('journal');
  program('journalctl', 'exit 0');
  writeFileSync(join(bin, 'kmsg'), '');
  expect(await kernelLogAccess(join(bin, 'kmsg'))).toBe('kmsg');
  expect(await kernelLogAccess(join(bin, 'none'))).toBeNull();
});

it('takes /dev/kmsg where the journal may not be read, and says so where neither may', async () => {
  program('journalctl', 'exit 1');
  await followsKmsg();
  log?.stop();
  const none = followKernelLog(() => undefined, join(bin, 'none'));
  await until(() => none.note() !== null, 20_000, 'the note');
  none.stop();
});

it('takes /dev/kmsg where no process can be started', async () => {
  program('journalctl', `printf '{"MESSAGE":"Linux version"}\\n'`);
  // So much environment no process may have: `spawn` throws, as it does where there is no memory for one.
  vi.stubEnv('LANDLORD_TEST_LONG', 'x'.repeat(200_000));
  expect(await kernelLogAccess(join(bin, 'none'))).toBeNull();
  await followsKmsg();
});

it('takes /dev/kmsg where the journal could be read and its follower can not be started', async () => {
  program('journalctl', `printf '{"MESSAGE":"Linux version"}\\n'; sleep 0.5`);
  const file = join(bin, 'kmsg');
  writeFileSync(file, '');
  const messages: string[] = [];
  log = followKernelLog((message) => messages.push(message), file);
  // The first one runs by now.
  vi.stubEnv('LANDLORD_TEST_LONG', 'x'.repeat(200_000));
  const comes = (): boolean => {
    appendFileSync(file, '3,2,6,-;late\n');
    return messages.includes('late');
  };
  await until(comes, 20_000, 'a message');
});
