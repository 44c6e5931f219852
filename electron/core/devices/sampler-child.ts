/**
 * The process that makes every driver and sysfs read. A driver may hang it for ever, or crash it:
 * the runtime then starts another. It ends when the runtime does, told by its channel closing.
 */
import { flushCompileCache } from 'node:module';
import { systemClock } from '../clock.ts';
import { procfs } from '../process/procfs.ts';
import { processScanner } from './process-scan.ts';
import { type SamplerCore, samplerCore } from './sampler-core.ts';
import type { FromSampler, SamplerConfig, ToSampler } from './sampler-messages.ts';
import { lookUpNames } from './static-names.ts';
import { machineTree } from './sysfs.ts';
import { endTools } from './tool-run.ts';

const reader = procfs();
let core: SamplerCore | null = null;
let watched: readonly number[] = [];
let timer: NodeJS.Timeout | null = null;
/** Brings the next turn forward; null while one is being taken, or before the start. */
let hurry: (() => void) | null = null;

/** However often it is asked, no device is read more often than this. */
const HURRY_MS = 80;

function say(message: FromSampler): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function start(config: SamplerConfig): void {
  core?.close();
  if (timer !== null) clearTimeout(timer);
  const own = new Set([process.pid, process.ppid]);
  const scanner = processScanner(machineTree, reader.pageBytes, () => own);
  const names = {
    name: (pid: number) => reader.stat(pid)?.comm ?? null,
    startTimeTicks: (pid: number) => reader.stat(pid)?.startTimeTicks ?? null,
  };
  const running = samplerCore({ tree: machineTree, scanner, names, lookUpNames }, config);
  core = running;
  running.watch(watched);
  let dueAtMs = systemClock.monotonicMs();
  const turn = async (): Promise<void> => {
    hurry = null;
    const beganAtMs = systemClock.monotonicMs();
    const set = await running.tick(systemClock.monotonicMs());
    if (core !== running) return;
    say({ type: 'set', set });
    // A turn that took long is not made up for: the next falls on the next beat.
    const nowMs = systemClock.monotonicMs();
    dueAtMs = Math.max(dueAtMs + config.periodMs, nowMs);
    timer = setTimeout(() => void turn(), dueAtMs - nowMs);
    hurry = () => {
      hurry = null;
      if (timer !== null) clearTimeout(timer);
      dueAtMs = Math.max(systemClock.monotonicMs(), beganAtMs + HURRY_MS);
      timer = setTimeout(() => void turn(), Math.max(0, dueAtMs - systemClock.monotonicMs()));
    };
  };
  void turn();
}

process.on('message', (message: ToSampler) => {
  switch (message.type) {
    case 'start':
      start(message.config);
      break;
    case 'watch':
      watched = message.pids;
      core?.watch(watched);
      break;
    case 'hurry':
      core?.hurry();
      hurry?.();
      break;
    case 'look again':
      core?.lookAgain();
      hurry?.();
      break;
    case 'facts':
      say({ type: 'answer', id: message.id, facts: reader.facts(message.pids) });
      break;
    case 'servers':
      say({ type: 'answer', id: message.id, facts: reader.servers() });
      break;
    case 'find':
      say({ type: 'answer', id: message.id, facts: reader.find(message.query) });
      break;
  }
});

// Written now, because this process usually ends by a signal: with the cache the next one needs no
// TypeScript loader in memory. Does nothing where no cache folder was given.
setTimeout(() => flushCompileCache(), 2000).unref();

process.on('disconnect', () => {
  core?.close();
  endTools();
  process.exit(0);
});
// Ctrl-C reaches the whole terminal group; the runtime decides when this process goes.
process.on('SIGINT', () => {});
