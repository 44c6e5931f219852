import { setTimeout as sleep } from 'node:timers/promises';
import { parsePciAddress } from './quantity.ts';
import type { CardFacts } from './reader.ts';

const LIMIT_MS = 8000;

/** What systeminformation says of a card; the part of it that is used. */
export interface NamedController {
  readonly busAddress?: string | undefined;
  readonly model: string;
}

/** Names by PCI address. Without a domain in the bus address it is domain 0. */
export function namesOf(controllers: readonly NamedController[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { busAddress, model } of controllers) {
    const pciAddress = parsePciAddress(busAddress);
    const name = model.trim();
    if (pciAddress !== null && name !== '' && !/^device [0-9a-f]{4}$/i.test(name))
      names.set(pciAddress, name);
  }
  return names;
}

/**
 * Names of cards through systeminformation, which runs lspci: once, beside the readings, loaded only
 * when asked, and given up after 8 s. Not with an NVIDIA card in the machine: it would run
 * nvidia-smi, which wakes the card, and NVML gives that name anyway.
 */
export async function lookUpNames(
  cards: readonly CardFacts[],
  ask: () => Promise<readonly NamedController[]> = askSystemInformation,
): Promise<ReadonlyMap<string, string>> {
  if (cards.some((card) => card.kind === 'nvidia' || card.kind === 'nouveau')) return new Map();
  const limit = new AbortController();
  const late = sleep(LIMIT_MS, [], { signal: limit.signal, ref: false }).catch(() => []);
  try {
    return namesOf(await Promise.race([ask(), late]));
  } catch {
    return new Map();
  } finally {
    limit.abort();
  }
}

async function askSystemInformation(): Promise<readonly NamedController[]> {
  const { graphics } = await import('systeminformation');
  return (await graphics()).controllers;
}
