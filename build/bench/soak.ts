import type { DeviceState, LandlordState } from '../../shared/state.ts';
import { type BenchReport, figures } from './report.ts';
import { type Held, MODELS, SMALL, type SoakRig, startSoakRig, TOTAL_BYTES } from './soak-rig.ts';

export interface SoakResult {
  readonly lastedMs: number;
  /** Answered here; elsewhere; with a refusal that says why (`vram_denied`, `big_models_asleep`). */
  readonly turns: { local: number; fallback: number; refused: number };
  readonly tookMs: readonly number[];
  /** Events by kind. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly reloads: number;
  readonly orders: number;
  /** Times that more was admitted, each checked against cap and floor. */
  readonly admissions: number;
  readonly held: readonly Held[];
  /** What must not be, in words. */
  readonly faults: readonly string[];
}

const MB = 1_000_000;
const GB = 1_000 * MB;
const NAMES = Object.keys(MODELS);
/** Before this much has run, memory has not settled and says nothing. */
const JUDGED_AFTER_MS = 300_000;
const MAY_GROW_BYTES = 30 * MB;
const MAY_GROW_FILES = 12;
const MAY_GROW_DATABASE_BYTES_PER_HOUR = 100 * MB;
/** A reading and a command cross each other; what happens at once can't be told apart. */
const CROSSING_MS = 4_000;
/** Codes of refusals that name what a person or the memory did. */
const TOLD = /vram_denied|big_models_asleep|local_backend_busy|"code":"backend_refused"/;
/** Batch stands back for a minute, and then others for it for as long: within three it is answered. */
const TURN_LIMIT_MS = 180_000;

/** Loads, turns, deflections, evictions and config reloads over a real runtime, for so long. */
export async function soak(lastsMs: number): Promise<SoakResult> {
  await using rig = await startSoakRig();
  const stage = new Stage(rig, lastsMs);
  await Promise.all([
    stage.session('writer', 100),
    stage.session('reader', 300),
    stage.session('indexer', 0),
    stage.person(),
    stage.desktop(),
    stage.editor(),
    stage.window(),
    stage.watch(),
  ]);
  return stage.result();
}

class Stage {
  readonly #rig: SoakRig;
  readonly #endMs: number;
  readonly #startedMs = performance.now();
  readonly #faults: string[] = [];
  readonly #tookMs: number[] = [];
  readonly #turns = { local: 0, fallback: 0, refused: 0 };
  readonly #held: Held[] = [];
  readonly #kinds: Record<string, number> = {};
  #desktopAtMs = 0;
  #desktopBytes = 0;
  #configAtMs = 0;
  #reloads = 0;
  #orders = 0;
  #admissions = 0;
  #lastId = 0;

  constructor(rig: SoakRig, lastsMs: number) {
    this.#rig = rig;
    this.#endMs = this.#startedMs + lastsMs;
  }

  get #over(): boolean {
    return performance.now() >= this.#endMs || this.#rig.exitCode() !== null;
  }

  result(): SoakResult {
    if (this.#rig.exitCode() !== null) this.#fault(`the runtime ended with ${this.#rig.exitCode()}`);
    const lastedMs = performance.now() - this.#startedMs;
    if (lastedMs >= JUDGED_AFTER_MS) this.#judgeGrowth(lastedMs);
    return {
      lastedMs,
      turns: this.#turns,
      tookMs: this.#tookMs,
      kinds: this.#kinds,
      reloads: this.#reloads,
      orders: this.#orders,
      admissions: this.#admissions,
      held: this.#held,
      faults: this.#faults,
    };
  }

  /** Turns one after the other; every one must be answered, here or elsewhere. */
  async session(name: string, pauseMs: number): Promise<void> {
    for (let turn = 0; !this.#over; turn += 1) {
      const model = NAMES[Math.floor(Math.random() * NAMES.length)] ?? 'little';
      const beganMs = performance.now();
      try {
        const answer = await fetch(`${this.#rig.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-landlord-session': name },
          body: JSON.stringify({
            model,
            messages: [{ role: 'user', content: `turn ${turn}` }],
            max_tokens: 4 + Math.floor(Math.random() * 40),
            stream: turn % 3 === 0,
          }),
          signal: AbortSignal.timeout(TURN_LIMIT_MS),
        });
        const text = await answer.text();
        const route = answer.headers.get('x-landlord-route');
        // While a person has big models asleep, holds the room, or unloads what is loading, it is told so.
        const told = answer.status >= 500 && TOLD.test(text);
        if (answer.status === 200 && text.length > 0)
          this.#turns[route === 'fallback' ? 'fallback' : 'local'] += 1;
        else if (told) this.#turns.refused += 1;
        else this.#fault(`${name}: ${model} was answered ${answer.status}: ${text.slice(0, 200)}`);
        this.#tookMs.push(performance.now() - beganMs);
      } catch (error) {
        if (!this.#over) this.#fault(`${name}: ${model} got no answer: ${String(error)}`);
      }
      await sleep(pauseMs);
    }
  }

  /** What a person orders. */
  async person(): Promise<void> {
    const orders = ['load', 'unload', 'pin', 'unpin', 'make-room', 'restore', 'sleep', 'wake'] as const;
    while (!this.#over) {
      const order = orders[Math.floor(Math.random() * orders.length)] ?? 'wake';
      const model = NAMES[Math.floor(Math.random() * NAMES.length)] ?? 'little';
      const isOfModel = ['load', 'unload', 'pin', 'unpin'].includes(order);
      const path = isOfModel ? `/api/models/router%2F${model}/${order}` : `/api/${order}`;
      const body = order === 'make-room' ? { bytes: '6GB' } : order === 'sleep' ? { for: '2s' } : {};
      const answer = await this.#rig.post(path, body).catch(() => null);
      const text = (await answer?.text().catch(() => '')) ?? '';
      if (answer !== null && answer.status === 500) this.#fault(`${order}: ${text.slice(0, 200)}`);
      this.#orders += 1;
      // A pin stays a moment, or nothing would ever leave.
      if (order === 'pin')
        await (await this.#rig.post(`/api/models/router%2F${model}/unpin`).catch(() => null))?.text();
      await sleep(700);
    }
  }

  /** A browser or a game that takes memory and gives it back. */
  async desktop(): Promise<void> {
    const sizes = [1, 4, 12, 2, 8, 1];
    for (let at = 0; !this.#over; at += 1) {
      this.#desktopBytes = (sizes[at % sizes.length] ?? 1) * GB;
      this.#desktopAtMs = performance.now();
      this.#rig.card.set({ name: 'game', bytes: this.#desktopBytes, type: 'G' });
      await sleep(Math.min(10_000, Math.max(0, this.#endMs - performance.now())));
    }
  }

  /** Saves the config again and again. */
  async editor(): Promise<void> {
    for (let at = 0; !this.#over; at += 1) {
      this.#configAtMs = performance.now();
      this.#rig.configure(at % 2 === 0 ? '2GB' : '3GB', at % 3 === 0 ? '1s' : '3s');
      this.#reloads += 1;
      await sleep(Math.min(11_000, Math.max(0, this.#endMs - performance.now())));
    }
  }

  /** A window that opens and closes. */
  async window(): Promise<void> {
    while (!this.#over) {
      const leaves = new AbortController();
      const timer = setTimeout(() => leaves.abort(), 1_500);
      await this.#rig
        .look('/api/stream', leaves.signal)
        .then((answer) => answer.text())
        .catch(() => '');
      clearTimeout(timer);
      await sleep(500);
    }
  }

  /** Reads state, events and what the process has, every half second. */
  async watch(): Promise<void> {
    let before: ReadonlySet<string> | null = null;
    while (!this.#over) {
      const state = await this.#rig.state().catch(() => null);
      if (state !== null) before = this.#checkAdmissions(state, before);
      await this.#readEvents();
      if (this.#rig.exitCode() === null) this.#held.push(this.#rig.held());
      await sleep(500);
    }
    await this.#readEvents();
  }

  async #readEvents(): Promise<void> {
    const events = await this.#rig.events(`after=${this.#lastId}&limit=5000`).catch(() => []);
    for (const event of events) {
      if (event.id <= this.#lastId) this.#fault(`event ${event.id} came after ${this.#lastId}`);
      this.#lastId = Math.max(this.#lastId, event.id);
      this.#kinds[event.kind] = (this.#kinds[event.kind] ?? 0) + 1;
      if (event.kind === 'model_crashed' || event.kind === 'load_failed' || event.kind === 'storage_failed')
        this.#fault(`${event.kind}: ${event.reason}`);
    }
  }

  /** Whatever was admitted since the last look fits: booked within the cap, and the floor free beside the desktop. */
  #checkAdmissions(state: LandlordState, before: ReadonlySet<string> | null): ReadonlySet<string> {
    const [device] = state.devices;
    const there = new Set(
      state.models.flatMap(({ id, status }) =>
        status === 'loaded' || status === 'loading' ? [id.slice('router/'.length)] : [],
      ),
    );
    const fresh = before === null ? [] : [...there].filter((name) => !before.has(name));
    const calm =
      performance.now() - Math.max(this.#desktopAtMs, this.#configAtMs) > CROSSING_MS && device !== undefined;
    if (fresh.length === 0 || !calm) return there;
    this.#admissions += 1;
    this.#checkFits(device, [...there], fresh);
    return there;
  }

  /** A big model may go down to the hard floor where it is the only one; small residents stay beside it. */
  #checkFits(device: DeviceState, there: readonly string[], fresh: readonly string[]): void {
    const takenBytes = there.reduce((bytes, name) => bytes + (MODELS[name] ?? 0), 0);
    const big = there.filter((name) => name !== SMALL);
    const isSoleBig = big.length === 1 && big.every((name) => fresh.includes(name));
    const freeBytes = TOTAL_BYTES - this.#desktopBytes - takenBytes;
    const floorBytes = (isSoleBig ? device.hardFloorBytes : device.floorBytes) ?? 0;
    if (freeBytes < floorBytes)
      this.#fault(
        `${there.join(' and ')} (new: ${fresh.join(', ')}) leave ${(freeBytes / GB).toFixed(1)} GB beside the desktop's ${this.#desktopBytes / GB} GB, under the floor of ${floorBytes / GB} GB`,
      );
    if (device.capBytes !== null && takenBytes > device.capBytes)
      this.#fault(`${there.join(' and ')} take more than the cap of ${device.capBytes / GB} GB`);
  }

  #judgeGrowth(lastedMs: number): void {
    const quarter = Math.floor(this.#held.length / 4);
    const early = this.#held.slice(quarter, 2 * quarter);
    const late = this.#held.slice(-quarter);
    const grown = (pick: (held: Held) => number): number => median(late.map(pick)) - median(early.map(pick));
    const residentBytes = grown((held) => held.residentBytes);
    if (residentBytes > MAY_GROW_BYTES) this.#fault(`memory grew by ${(residentBytes / MB).toFixed(0)} MB`);
    const files = grown((held) => held.files);
    if (files > MAY_GROW_FILES) this.#fault(`${files} more files are open`);
    const perHour = (grown((held) => held.databaseBytes) * 3_600_000) / (lastedMs / 2);
    if (perHour > MAY_GROW_DATABASE_BYTES_PER_HOUR)
      this.#fault(`the database grows by ${(perHour / MB).toFixed(0)} MB an hour`);
  }

  /** Told at once too: who runs it for hours needn't wait for its end to know. */
  #fault(what: string): void {
    if (this.#faults.length >= 50) return;
    const fault = `after ${((performance.now() - this.#startedMs) / 1000).toFixed(0)} s: ${what}`;
    this.#faults.push(fault);
    process.stderr.write(`soak, ${fault}\n`);
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** `--minutes`, default 2 h; `--short`: one minute. */
export async function benchSoak(short: boolean, minutes: number | null): Promise<BenchReport> {
  const result = await soak((minutes ?? (short ? 1 : 120)) * 60_000);
  return soakReport(result);
}

export function soakReport(result: SoakResult): BenchReport {
  const { turns, held, kinds, faults } = result;
  const quarter = Math.max(1, Math.floor(held.length / 4));
  const spread = (what: string, pick: (one: Held) => number, unit: number, name: string): string => {
    const early = median(held.slice(quarter, 2 * quarter).map(pick)) / unit;
    const late = median(held.slice(-quarter).map(pick)) / unit;
    return `${what}: ${early.toFixed(1)} ${name} in the second quarter, ${late.toFixed(1)} in the last, ${(Math.max(...held.map(pick)) / unit).toFixed(1)} at most`;
  };
  const counts = Object.entries(kinds)
    .toSorted(([, one], [, other]) => other - one)
    .map(([kind, count]) => `${count} ${kind}`);
  return {
    part: 'soak',
    sides: figures([
      { name: 'a turn, from asking to its answer', samplesUs: result.tookMs.map((ms) => ms * 1000) },
    ]),
    notes: [
      `${(result.lastedMs / 60_000).toFixed(1)} min: ${turns.local} turns answered here, ${turns.fallback} elsewhere, ${turns.refused} refused with the reason; ${result.orders} orders, ${result.reloads} config reloads`,
      `events: ${counts.join(', ')}`,
      `${result.admissions} admissions checked against cap and floor`,
      spread('memory', (one) => one.residentBytes, MB, 'MB'),
      spread('open files', (one) => one.files, 1, ''),
      spread('database', (one) => one.databaseBytes, MB, 'MB'),
      faults.length === 0 ? 'no fault' : `${faults.length} faults:`,
      ...faults,
    ],
    details: result,
    ...(faults.length > 0 ? { failed: true } : {}),
  };
}
