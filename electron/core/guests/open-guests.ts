import type { Sampler } from '../devices/sampler.ts';
import type { CommandContext } from '../loop/load-command.ts';
import type { Offers } from '../loop/offers.ts';
import { ComfyGuests } from './comfy-guests.ts';

/** Guests over the real runtime. */
export function comfyGuests(
  context: () => CommandContext,
  offers: Offers,
  sampler: () => Sampler,
): ComfyGuests {
  return new ComfyGuests({
    facts: (pids) => sampler().facts(pids),
    rows: () => context().loop.sight.processes(context().clock.monotonicMs()),
    settings: () => context().loop.settings.comfyui ?? [],
    offer: (list) => offers.set('comfyui', list),
    tell: (event) => context().journal.tell(event),
    monotonicMs: () => context().clock.monotonicMs(),
    until: (condition, limitMs) => context().loop.until(condition, limitMs),
    sampleSoon: () => sampler().hurry(),
  });
}

/** Bytes by device, from several who give. */
export function summed(...parts: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const part of parts) for (const [id, bytes] of part) all.set(id, (all.get(id) ?? 0) + bytes);
  return all;
}
