import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { journalMessage } from './trouble.ts';

/** A journal on a slow disk takes a moment to be opened. */
const LIMIT_MS = 10_000;

/** Where this user may read the kernel's log; null: nowhere. */
export type KernelLogAccess = 'journal' | 'kmsg' | null;

export async function kernelLogAccess(kmsg = '/dev/kmsg'): Promise<KernelLogAccess> {
  if (await journalSpeaks()) return 'journal';
  return (await opens(kmsg)) ? 'kmsg' : null;
}

/**
 * Whether the journal shows this user the kernel's messages. It lets everybody follow it, and shows those
 * outside its groups their own messages alone: only one of the kernel's, which every boot has, proves it.
 */
export function journalSpeaks(): Promise<boolean> {
  return new Promise((resolve) => {
    const args = ['--dmesg', '--lines=1', '--output=json', '--quiet', '--no-pager'];
    let child: ChildProcess;
    try {
      // Without a descriptor left there is a child with no streams, and an error follows; or `spawn` throws.
      child = spawn('journalctl', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    } catch {
      return resolve(false);
    }
    let text = '';
    const over = (speaks: boolean): void => {
      clearTimeout(timer);
      resolve(speaks);
      child.kill();
    };
    const timer = setTimeout(() => over(false), LIMIT_MS);
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.split('\n').some((line) => journalMessage(line) !== null)) over(true);
    });
    child.once('error', () => over(false));
    child.once('close', () => over(text.split('\n').some((line) => journalMessage(line) !== null)));
  });
}

async function opens(path: string): Promise<boolean> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    await file.close();
    return true;
  } catch {
    return false;
  }
}
