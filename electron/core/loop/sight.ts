import type { FreeReading } from '../actuators/operation.ts';
import { evictionUnderWay } from '../devices/gtt.ts';
import {
  type DeviceSample,
  isStale,
  type ProcessMemory,
  type SamplerTrouble,
  type SampleSet,
} from '../devices/sample.ts';

/** Enough readings for the rate at which GTT grows (3 s at 500 ms), and no more. */
const HISTORY = 16;
/** A process list older than this says nothing of now. */
const PROCESSES_KEPT_MS = 15_000;

/** What the sampler has shown last, device by device. */
export class Sight {
  #devices: readonly DeviceSample[] = [];
  readonly #history = new Map<string, DeviceSample[]>();
  #processes: readonly ProcessMemory[] = [];
  #processesAtMs: number | null = null;
  #troubles: readonly SamplerTrouble[] = [];
  #seen = false;

  /** Other devices are to be read from now on. */
  forget(): void {
    this.#seen = false;
    this.#devices = [];
    this.#troubles = [];
    this.#history.clear();
  }

  take(set: SampleSet): void {
    this.#seen = true;
    this.#devices = set.devices;
    this.#troubles = set.troubles;
    if (set.processes !== null) {
      this.#processes = set.processes;
      this.#processesAtMs = set.takenAtMs;
    }
    for (const sample of set.devices) {
      const history = this.#history.get(sample.id) ?? [];
      if (history.at(-1)?.takenAtMs !== sample.takenAtMs) history.push(sample);
      if (history.length > HISTORY) history.shift();
      this.#history.set(sample.id, history);
    }
  }

  /** False until the first reading: then nothing is known, and that is no lost device. */
  get seen(): boolean {
    return this.#seen;
  }

  devices(): readonly DeviceSample[] {
    return this.#devices;
  }

  device(id: string | null): DeviceSample | null {
    return this.#devices.find((sample) => sample.id === id) ?? null;
  }

  processes(nowMs: number): readonly ProcessMemory[] {
    return this.processesKnown(nowMs) ?? [];
  }

  /** null: there is no list, or it is too old. */
  processesKnown(nowMs: number): readonly ProcessMemory[] | null {
    return this.#processesAtMs !== null && nowMs - this.#processesAtMs <= PROCESSES_KEPT_MS
      ? this.#processes
      : null;
  }

  /** Monotonic ms of the newest list of processes; null: none yet. */
  get processesAtMs(): number | null {
    return this.#processesAtMs;
  }

  troubles(): readonly SamplerTrouble[] {
    return this.#troubles;
  }

  evicting(id: string): boolean | null {
    return evictionUnderWay(this.#history.get(id) ?? []);
  }

  /** The newest reading that was there at `atMs` and tells what is free; null: none is kept from then. */
  readingAt(id: string | null, atMs: number): DeviceSample | null {
    const history = id === null ? [] : (this.#history.get(id) ?? []);
    return (
      history.findLast(
        (sample) => sample.takenAtMs <= atMs && sample.error === null && sample.freeBytes !== null,
      ) ?? null
    );
  }

  /** The driver's free figure; null while it is stale or unknown. */
  free(id: string | null, nowMs: number): FreeReading {
    const sample = this.device(id);
    if (sample === null || isStale(sample, nowMs))
      return { freeBytes: null, totalBytes: null, sampledAtMs: null };
    return { freeBytes: sample.freeBytes, totalBytes: sample.totalBytes, sampledAtMs: sample.takenAtMs };
  }
}
