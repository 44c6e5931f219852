import { messageOf, type Result } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import { formatDuration } from '../../../shared/format.ts';
import type { FallbackSetting } from '../../../shared/settings.ts';
import type { FallbackState } from '../../../shared/state.ts';
import { type BackOff, backOff } from '../devices/back-off.ts';

interface Ailing {
  readonly setting: FallbackSetting;
  readonly sinceMs: number;
  why: string;
  readonly wait: BackOff;
  timer: NodeJS.Timeout | null;
}

const FIRST_MS = 5_000;
const MOST_MS = 300_000;
/** A provider's own words for: not now. */
const AWAY = new Set([502, 503, 504, 529]);

export function isAway(status: number): boolean {
  return AWAY.has(status);
}

/**
 * Which entries of the fallback chain do not answer. One that failed is passed over and asked by itself, less
 * and less often, until it answers again: the next request pays for no dead address. One that is well is never
 * asked: nothing leaves the machine but requests.
 */
export class FallbackHealth {
  readonly #ailing = new Map<string, Ailing>();
  readonly #probe: (setting: FallbackSetting) => Promise<Result<void>>;
  readonly #tell: (event: NewEvent) => void;
  readonly #nowMs: () => number;
  readonly #pace: { readonly firstMs: number; readonly mostMs: number };

  constructor(options: {
    readonly probe: (setting: FallbackSetting) => Promise<Result<void>>;
    readonly tell: (event: NewEvent) => void;
    readonly monotonicMs: () => number;
    readonly pace?: { readonly firstMs: number; readonly mostMs: number };
  }) {
    this.#probe = options.probe;
    this.#tell = options.tell;
    this.#nowMs = options.monotonicMs;
    this.#pace = options.pace ?? { firstMs: FIRST_MS, mostMs: MOST_MS };
  }

  /** Why it is passed over, in a sentence; null: it may be tried. */
  objection({ name, url }: FallbackSetting): string | null {
    const one = this.#ailing.get(url);
    if (one === undefined) return null;
    return `${name} has not answered for ${formatDuration(this.#nowMs() - one.sinceMs)} (${one.why}).`;
  }

  failed(setting: FallbackSetting, why: string): void {
    const known = this.#ailing.get(setting.url);
    if (known !== undefined) {
      known.why = why;
      return;
    }
    const wait = backOff(this.#pace.firstMs, this.#pace.mostMs);
    const one: Ailing = { setting, sinceMs: this.#nowMs(), why, wait, timer: null };
    this.#ailing.set(setting.url, one);
    this.#tell({
      kind: 'backend_down',
      backend: setting.name,
      reason: `The fallback ${setting.name} does not answer: ${why}. Turns pass it over, and it is asked by itself until it does.`,
      numbers: {},
    });
    this.#again(one);
  }

  worked({ name, url }: FallbackSetting): void {
    const one = this.#ailing.get(url);
    if (one === undefined) return;
    if (one.timer !== null) clearTimeout(one.timer);
    this.#ailing.delete(url);
    const forMs = this.#nowMs() - one.sinceMs;
    this.#tell({
      kind: 'backend_up',
      backend: name,
      reason: `The fallback ${name} answers again after ${formatDuration(forMs)}.`,
      numbers: { downMs: Math.round(forMs) },
    });
  }

  /** In the order of the settings; those that are no longer set are forgotten. */
  states(
    settings: readonly FallbackSetting[],
    iso: (monotonicMs: number) => string,
  ): readonly FallbackState[] {
    for (const [url, one] of this.#ailing)
      if (!settings.some((setting) => setting.url === url)) this.#forget(one);
    return settings.map(({ name, url }) => {
      const one = this.#ailing.get(url);
      return one === undefined
        ? { name, url, status: 'ready', since: null, error: null }
        : { name, url, status: 'down', since: iso(one.sinceMs), error: one.why };
    });
  }

  stop(): void {
    for (const one of this.#ailing.values()) this.#forget(one);
  }

  #forget(one: Ailing): void {
    if (one.timer !== null) clearTimeout(one.timer);
    this.#ailing.delete(one.setting.url);
  }

  #again(one: Ailing): void {
    one.wait.failed(this.#nowMs());
    one.timer = setTimeout(() => void this.#ask(one), one.wait.waitMs);
    one.timer.unref();
  }

  async #ask(one: Ailing): Promise<void> {
    one.timer = null;
    const answer = await this.#probe(one.setting).catch(
      (thrown: unknown): Result<void> => ({
        ok: false,
        error: { code: 'internal', message: messageOf(thrown) },
      }),
    );
    if (this.#ailing.get(one.setting.url) !== one) return;
    if (answer.ok) this.worked(one.setting);
    else {
      one.why = answer.error.message.replace(/\.$/, '');
      this.#again(one);
    }
  }
}
