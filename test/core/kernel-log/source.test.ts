import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
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
  process.env.PATH = path;
  rmSync(bin, { recursive: true, force: true });
});

function program(name: string, text: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
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
  writeFileSync(join(bin, 'kmsg'), '3,1,99999999999999,-;late\n');
  const messages: string[] = [];
  log = followKernelLog((message) => messages.push(message), join(bin, 'kmsg'));
  await until(() => messages.length > 0, 20_000, 'a message');
  expect(messages).toEqual(['late']);
});

it('reads the kernel’s own file without waiting in it, and what comes later too', async () => {
  const file = join(bin, 'kmsg');
  writeFileSync(file, Array.from({ length: 2_000 }, (_, at) => `6,${at},${at},-;early\n`).join(''));
  const messages: string[] = [];
  const reader = followKmsg(file, 1_990, (message) => messages.push(message));
  await until(() => messages.length === 10, 10_000, 'those of now');
  appendFileSync(file, '4,9,99999999,-;amdgpu: ring gfx timeout\n SUBSYSTEM=pci\n');
  await until(() => messages.length === 11, 10_000, 'what comes later');
  expect(messages.at(-1)).toBe('amdgpu: ring gfx timeout');
  reader?.stop();
  reader?.stop();
  expect(followKmsg(join(bin, 'none'), 0, () => undefined)).toBeNull();
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
  writeFileSync(join(bin, 'kmsg'), '3,1,99999999999999,-;late\n3,1,5,-;early\n');
  const messages: string[] = [];
  log = followKernelLog((message) => messages.push(message), join(bin, 'kmsg'));
  await until(() => messages.length > 0, 20_000, 'a message');
  expect(messages).toEqual(['late']);
  log.stop();
  const none = followKernelLog(() => undefined, join(bin, 'none'));
  await until(() => none.note() !== null, 20_000, 'the note');
  none.stop();
});
