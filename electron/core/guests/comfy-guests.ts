import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { ComfySettings } from '../../../shared/settings.ts';
import type { ProcessMemory } from '../devices/sample.ts';
import type { GuardDevice } from '../guards/world.ts';
import type { Offer } from '../loop/offers.ts';
import type { ProcessFacts } from '../process/identity.ts';
import type { CommandDone } from '../runtime-api.ts';
import { type ComfyUi, comfyUi } from './comfyui.ts';

/** A ComfyUI that holds memory here, proven by its answer. */
interface Guest {
  readonly pid: number;
  readonly startTimeTicks: number | null;
  readonly url: string;
}

export interface GuestWorld {
  facts(pids: readonly number[]): Promise<Result<readonly ProcessFacts[]>>;
  rows(): readonly ProcessMemory[];
  settings(): ComfySettings;
  offer(offers: readonly Offer[]): void;
  tell(event: NewEvent): void;
  monotonicMs(): number;
  /** Resolves true once it holds, false when the limit has passed. */
  until(condition: () => boolean, limitMs: number): Promise<boolean>;
  sampleSoon(): void;
  /** Tests: another server. */
  readonly connect?: (url: string) => ComfyUi;
}

/** Its CUDA context and what torch keeps stay: less than this is not worth a question. */
const KEEPS_BYTES = 1_000_000_000;
/** Asked and nothing came: not again for so long. */
const PAUSE_MS = 60_000;
/** It frees between two pictures, and within a moment while it makes none. */
const FREE_LIMIT_MS = 8_000;
/** Until it has said whether it makes a picture, what a known one would give counts as coming. */
const ANSWER_LIMIT_MS = 1_000;
/** While a floor stays broken. */
const SEEK_EVERY_MS = 5_000;
const DEFAULT_PORT = 8188;

/**
 * Image generators keep their models while they work on nothing. A ComfyUI is asked to let them go before
 * any model is evicted: one that is named in the settings by itself, one that was only found when a
 * person says so. One that makes a picture is left alone.
 */
export class ComfyGuests {
  readonly #world: GuestWorld;
  readonly #guests = new Map<number, Guest>();
  readonly #askedAtMs = new Map<number, number>();
  /** By device: when somebody to ask was last looked for. */
  readonly #soughtAtMs = new Map<string, number>();
  #provenAtMs = Number.NEGATIVE_INFINITY;
  /** By device: what is on its way, until when. */
  readonly #giving = new Map<string, { readonly bytes: number; readonly untilMs: number }>();

  constructor(world: GuestWorld) {
    this.#world = world;
  }

  /** Finds and proves them, and offers to ask those that may not be asked without a word. Now and then. */
  async look(): Promise<void> {
    await this.#find();
    const offers: Offer[] = [];
    for (const guest of this.#guests.values()) {
      const bytes = this.#held(guest.pid);
      if (this.#mayAsk(guest) || (bytes !== null && bytes < KEEPS_BYTES)) continue;
      if ((await this.#client(guest).isWorking()) !== false) continue;
      offers.push({
        id: `comfyui ${guest.pid}`,
        text: `ComfyUI (process ${guest.pid}, ${guest.url}) holds ${bytes === null ? 'memory' : formatBytes(bytes)} and makes no picture now. With \`comfyui: found\` in the settings it is asked by itself before a model is evicted.`,
        label: 'Ask ComfyUI to free its memory',
        question: 'Ask ComfyUI to unload its models? It loads them again with its next picture.',
        run: () => this.#ask(guest, 'you asked for it', null),
      });
    }
    this.#world.offer(offers);
  }

  async #find(): Promise<void> {
    const rows = this.#rows();
    for (const pid of this.#guests.keys()) if (!rows.some((row) => row.pid === pid)) this.#guests.delete(pid);
    for (const row of rows) await this.#prove(row);
  }

  /** One that has just come is proven before a floor is broken, not because one is. */
  #knowEarly(nowMs: number): void {
    const settings = this.#world.settings();
    if ((settings !== 'found' && settings.length === 0) || nowMs - this.#provenAtMs < SEEK_EVERY_MS) return;
    if (this.#rows().every((row) => this.#guests.get(row.pid)?.startTimeTicks === row.startTimeTicks)) return;
    this.#provenAtMs = nowMs;
    void this.#find();
  }

  /** For the guards: asks where a floor is broken, and says what is on its way by device. At once. */
  relieve(devices: readonly GuardDevice[]): ReadonlyMap<string, number> {
    const nowMs = this.#world.monotonicMs();
    this.#knowEarly(nowMs);
    const giving = new Map<string, number>();
    for (const { id, freeBytes, floorBytes, fresh } of devices) {
      const isShort = fresh && freeBytes !== null && floorBytes !== null && freeBytes < floorBytes;
      const coming = this.#giving.get(id);
      if (coming !== undefined && coming.untilMs > nowMs) giving.set(id, coming.bytes);
      else if (isShort && nowMs - (this.#soughtAtMs.get(id) ?? Number.NEGATIVE_INFINITY) > SEEK_EVERY_MS) {
        this.#soughtAtMs.set(id, nowMs);
        const bytes = this.#askable(id).reduce((sum, guest) => sum + this.#wouldGive(guest.pid, id), 0);
        if (bytes > 0) {
          // In the same step, or a model would go before it could answer.
          this.#giving.set(id, { bytes, untilMs: nowMs + ANSWER_LIMIT_MS });
          giving.set(id, bytes);
        }
        void this.makeRoom(id, 'the desktop is short of memory').then((freed) => {
          if (freed === 0) this.#giving.delete(id);
        });
      }
    }
    return giving;
  }

  /** Asks all on a device that may be asked; resolves with how much more is free once they had their time. */
  async makeRoom(deviceId: string, why: string): Promise<number> {
    const settings = this.#world.settings();
    if (settings !== 'found' && settings.length === 0) return 0;
    await this.#find();
    const asked = this.#askable(deviceId);
    if (asked.length === 0) return 0;
    const results = await Promise.all(asked.map((guest) => this.#ask(guest, why, deviceId)));
    return results.reduce((sum, one) => sum + (one.ok ? (one.value.numbers?.freedBytes ?? 0) : 0), 0);
  }

  /** Known ones on a device that may be asked, were not asked a moment ago, and hold enough, or nobody knows what. */
  #askable(deviceId: string): readonly Guest[] {
    const nowMs = this.#world.monotonicMs();
    return [...this.#guests.values()].filter((guest) => {
      const rows = this.#rows().filter((row) => row.pid === guest.pid && row.deviceId === deviceId);
      const heldBytes = this.#held(guest.pid, deviceId);
      return (
        rows.length > 0 &&
        this.#mayAsk(guest) &&
        (heldBytes === null || heldBytes >= KEEPS_BYTES) &&
        nowMs - (this.#askedAtMs.get(guest.pid) ?? Number.NEGATIVE_INFINITY) > PAUSE_MS
      );
    });
  }

  /** Nothing is promised in the name of one whose memory the driver does not tell. */
  #wouldGive(pid: number, deviceId: string): number {
    return Math.max(0, (this.#held(pid, deviceId) ?? 0) - KEEPS_BYTES / 2);
  }

  /** `deviceId` null: wherever it is. */
  async #ask(guest: Guest, why: string, deviceId: string | null): Promise<Result<CommandDone>> {
    const world = this.#world;
    const client = this.#client(guest);
    const isWorking = await client.isWorking();
    if (isWorking !== false)
      return fail('model_busy', 'ComfyUI is making a picture: it is asked once that is done.');
    this.#askedAtMs.set(guest.pid, world.monotonicMs());
    const where = deviceId ?? this.#rows().find((one) => one.pid === guest.pid)?.deviceId ?? null;
    const heldBytes = this.#held(guest.pid, where);
    if (where !== null)
      this.#giving.set(where, {
        bytes: this.#wouldGive(guest.pid, where),
        untilMs: world.monotonicMs() + FREE_LIMIT_MS,
      });
    const freed = await client.free();
    if (!freed.ok) {
      if (where !== null) this.#giving.delete(where);
      return freed;
    }
    const isLess = (): boolean => {
      world.sampleSoon();
      const nowBytes = this.#held(guest.pid, where);
      return heldBytes !== null && nowBytes !== null && nowBytes < heldBytes - KEEPS_BYTES / 2;
    };
    await world.until(isLess, FREE_LIMIT_MS);
    if (where !== null) this.#giving.delete(where);
    const leftBytes = this.#held(guest.pid, where);
    const freedBytes = heldBytes === null || leftBytes === null ? null : Math.max(0, heldBytes - leftBytes);
    const message =
      freedBytes === null
        ? `ComfyUI was asked to free its memory, since ${why}; the driver does not tell what it holds.`
        : freedBytes === 0
          ? `ComfyUI was asked to free its memory, since ${why}; it still holds ${formatBytes(heldBytes)}.`
          : `ComfyUI was asked to free its memory, since ${why}: ${formatBytes(freedBytes)} came back. It loads its models again with its next picture.`;
    world.tell({
      kind: 'tenant_asked',
      ...(where === null ? {} : { deviceId: where }),
      reason: message,
      numbers: { pid: guest.pid, heldBytes, freedBytes },
    });
    return ok({ message, numbers: { heldBytes, freedBytes } });
  }

  #mayAsk(guest: Guest): boolean {
    const settings = this.#world.settings();
    return settings === 'found' || settings.some((url) => sameAddress(url, guest.url));
  }

  async #prove(row: ProcessMemory): Promise<void> {
    const known = this.#guests.get(row.pid);
    if (known?.startTimeTicks === row.startTimeTicks) return;
    // One that does not answer yet is tried with the next look.
    const facts = await this.#world.facts([row.pid]);
    const [process] = facts.ok ? facts.value : [];
    if (process === undefined) return;
    for (const port of portsOf(process)) {
      const url = `http://127.0.0.1:${port}`;
      if (!(await this.#connect(url).prove()).ok) continue;
      this.#guests.set(row.pid, { pid: row.pid, startTimeTicks: row.startTimeTicks, url });
      return;
    }
  }

  #rows(): readonly ProcessMemory[] {
    return this.#world.rows().filter((row) => row.name === 'ComfyUI');
  }

  /** null: the driver does not tell. `deviceId` null: on all of them. */
  #held(pid: number, deviceId: string | null = null): number | null {
    const mine = this.#rows().filter(
      (row) => row.pid === pid && (deviceId === null || row.deviceId === deviceId),
    );
    if (mine.some((row) => row.bytes === null)) return null;
    return mine.reduce((sum, row) => sum + (row.bytes ?? 0), 0);
  }

  #client(guest: Guest): ComfyUi {
    return this.#connect(guest.url);
  }

  #connect(url: string): ComfyUi {
    return (this.#world.connect ?? comfyUi)(url);
  }
}

/** What it listens at, else what its command line says, else where it listens if it is told nothing. */
function portsOf(process: ProcessFacts): readonly number[] {
  const { listeningPorts } = process;
  if (listeningPorts !== null && listeningPorts.length > 0) return listeningPorts.slice(0, 8);
  const argv = process.command ?? [];
  const told = Number(argv[argv.indexOf('--port') + 1]);
  return [argv.includes('--port') && Number.isInteger(told) ? told : DEFAULT_PORT];
}

function sameAddress(one: string, other: string): boolean {
  try {
    const [a, b] = [new URL(one), new URL(other)];
    const isHere = /^(?:localhost|127\.|\[::1\])/.test(a.hostname);
    return isHere && a.port === b.port;
  } catch {
    return false;
  }
}
