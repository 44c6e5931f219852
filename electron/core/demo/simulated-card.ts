import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** A program of the simulated desktop, or another holder that is no model. */
export interface SimulatedProgram {
  readonly name: string;
  readonly bytes: number;
  readonly type: 'C' | 'G' | 'C+G';
  /** A real process that plays it; left out: none does. */
  readonly pid?: number;
}

/** What a model takes on the simulated card once its real child process runs. */
export interface SimulatedFootprint {
  readonly bytes: number;
  /** From the child's start until all of it is allocated. */
  readonly rampMs: number;
  /** From the child's start until it asks for its large buffer at once; absent: it grows evenly. */
  readonly bufferAtMs?: number;
}

export interface SimulatedCardOptions {
  /** The card's file, as a `simulated` device of the config names it. */
  readonly path: string;
  readonly name: string;
  readonly totalBytes: number;
  /** By `--alias` of the router's real children. */
  readonly footprints: Readonly<Record<string, SimulatedFootprint>>;
  /** Pid of the llama.cpp router whose children hold the models; null: none yet. */
  readonly routerPid: () => number | null;
  /** The card can't give a model its buffer: what a real one answers with an allocation failure. */
  readonly onAllocationFailed?: (alias: string, pid: number, missingBytes: number) => void;
  /** A child was seen for the first time, within a tick of its start. */
  readonly onChild?: (alias: string, pid: number) => void;
  /**
   * What the driver moves out past the card's end. `overflow` (default): what is missing. `whole models`:
   * all of the largest models that cover it, each counting in both places until all of it is moved, as
   * amdgpu does when it stops a compute process to make room (24.7 GB moved for a music player's wish).
   */
  readonly moves?: 'overflow' | 'whole models';
  /** How often it looks for children and writes its file; default 50 ms. */
  readonly tickMs?: number;
}

export interface CardReading {
  readonly totalBytes: number;
  readonly usedBytes: number;
  readonly freeBytes: number;
  readonly gttUsedBytes: number;
  readonly models: Readonly<Record<string, number>>;
}

const TICK_MS = 50;
/** A driver that has nowhere to go moves buffers out at this rate (the article: 24.7 GB in some ten seconds). */
const EVICT_BYTES_PER_S = 2_400_000_000;

interface Child {
  readonly pid: number;
  readonly alias: string;
  readonly seenAtMs: number;
  failed: boolean;
}

/**
 * A stand-in for a graphics card where there is none: a file that says how much is used, driven by
 * real llama-server processes. A model's bytes are taken while its child lives and come back only
 * when that process is gone, so that a guard has to do the real thing. Past the card's end the
 * overflow moves to GTT, as amdgpu's memory manager does.
 */
export class SimulatedCard implements Disposable {
  readonly #options: SimulatedCardOptions;
  readonly #programs = new Map<string, SimulatedProgram>();
  readonly #children = new Map<number, Child>();
  #gttBytes = 0;
  #lastMs = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #reading: CardReading;

  constructor(options: SimulatedCardOptions) {
    this.#options = { ...options, totalBytes: Math.round(options.totalBytes) };
    this.#reading = {
      totalBytes: options.totalBytes,
      usedBytes: 0,
      freeBytes: options.totalBytes,
      gttUsedBytes: 0,
      models: {},
    };
  }

  start(): void {
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), this.#options.tickMs ?? TICK_MS);
  }

  /** Sets what a program holds; 0 bytes: it is gone. */
  set(program: SimulatedProgram): void {
    if (program.bytes === 0) this.#programs.delete(program.name);
    else this.#programs.set(program.name, program);
    this.#tick();
  }

  reading(): CardReading {
    return this.#reading;
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #tick(): void {
    const nowMs = performance.now();
    const elapsedS = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    this.#lookForChildren(nowMs);
    const models = new Map([...this.#children.values()].map((child) => [child, this.#bytesOf(child, nowMs)]));
    const { totalBytes } = this.#options;
    const wanted =
      [...this.#programs.values()].reduce((sum, program) => sum + program.bytes, 0) +
      [...models.values()].reduce((sum, bytes) => sum + bytes, 0);
    const overflow = Math.max(0, wanted - totalBytes);
    const whole = this.#options.moves === 'whole models';
    const targetBytes = whole ? wholeModelsOver([...models.values()], overflow) : overflow;
    // Moved out as fast as the driver can; moved back at once when there is room.
    this.#gttBytes = Math.min(targetBytes, this.#gttBytes + EVICT_BYTES_PER_S * elapsedS);
    const givenBack = whole && this.#gttBytes < targetBytes ? 0 : this.#gttBytes;
    const usedBytes = Math.min(totalBytes, Math.round(wanted - givenBack));
    this.#reading = {
      totalBytes,
      usedBytes,
      freeBytes: totalBytes - usedBytes,
      gttUsedBytes: Math.round(this.#gttBytes),
      models: Object.fromEntries([...models].map(([child, bytes]) => [child.alias, bytes])),
    };
    this.#write([...models]);
  }

  #bytesOf(child: Child, nowMs: number): number {
    const footprint = this.#options.footprints[child.alias];
    if (footprint === undefined || child.failed) return 0;
    const bytes = Math.round(footprint.bytes);
    const ageMs = nowMs - child.seenAtMs;
    const { rampMs, bufferAtMs } = footprint;
    if (bufferAtMs === undefined) return ageMs >= rampMs ? bytes : Math.round((bytes * ageMs) / rampMs);
    if (ageMs < bufferAtMs) return 0;
    const before = this.#reading.models[child.alias] ?? 0;
    const missing = bytes - before - this.#reading.freeBytes;
    if (before === 0 && missing > 0 && this.#options.onAllocationFailed !== undefined) {
      child.failed = true;
      this.#options.onAllocationFailed(child.alias, child.pid, missing);
      return 0;
    }
    return bytes;
  }

  /** The router's children, by /proc alone: what a card's driver would see of them. */
  #lookForChildren(nowMs: number): void {
    const router = this.#options.routerPid();
    const alive = new Set(router === null ? [] : childrenOf(router));
    for (const pid of this.#children.keys()) if (!alive.has(pid)) this.#children.delete(pid);
    for (const pid of alive) {
      if (this.#children.has(pid)) continue;
      const alias = aliasOf(pid);
      if (alias === null) continue;
      this.#children.set(pid, { pid, alias, seenAtMs: nowMs, failed: false });
      this.#options.onChild?.(alias, pid);
    }
  }

  #write(models: readonly (readonly [Child, number])[]): void {
    const { path, name, totalBytes } = this.#options;
    const { usedBytes, gttUsedBytes } = this.#reading;
    const text = JSON.stringify({
      name,
      totalBytes,
      usedBytes,
      gttUsedBytes,
      busyPercent: null,
      drivesDisplay: true,
      processes: [
        // One that has asked for nothing yet is no client of the card.
        ...models
          .filter(([, bytes]) => bytes > 0)
          .map(([child, bytes]) => ({ pid: child.pid, name: 'llama-server', bytes, type: 'C' })),
        ...[...this.#programs.values()].map((program, index) => ({
          // No process of this machine has such a pid (kernel.pid_max is 2^22 at most).
          pid: program.pid ?? 2 ** 22 + 1 + index,
          name: program.name,
          bytes: program.bytes,
          type: program.type,
        })),
      ],
    });
    const aside = `${path}.new`;
    writeFileSync(aside, text);
    renameSync(aside, path);
  }
}

/** Bytes of the largest models that together cover `overflow`; all of them where they do not. */
export function wholeModelsOver(models: readonly number[], overflow: number): number {
  let bytes = 0;
  for (const model of [...models].sort((one, other) => other - one)) {
    if (bytes >= overflow) break;
    bytes += model;
  }
  return bytes;
}

/** /proc/<pid>/task/<tid>/children (proc(5)) lists those of one thread each: a router starts them from any. */
function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      try {
        return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
          .split(' ')
          .filter((word) => word !== '')
          .map(Number);
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

function aliasOf(pid: number): string | null {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const at = words.indexOf('--alias');
    return at < 0 ? null : (words[at + 1] ?? null);
  } catch {
    return null;
  }
}
