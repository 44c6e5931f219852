/** What the rigs of several parts need: ports, programs that end, and waiting for what is to come. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';

const LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 50;
/** Longer than a runtime takes to end in order. */
const KILL_AFTER_MS = 10_000;

export async function listen(server: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return address.port;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Asks again and again until it is not null; what throws meanwhile is not there yet. */
export async function within<T>(look: () => Promise<T | null>, what: string): Promise<T> {
  const endMs = performance.now() + LIMIT_MS;
  for (;;) {
    const found = await look().catch(() => null);
    if (found !== null) return found;
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** Until it answers with success. */
export async function answers(url: string): Promise<void> {
  await within(async () => ((await fetch(url)).ok ? true : null), url);
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  await end;
  clearTimeout(force);
}

export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? Number.NaN) * 1024;
}
