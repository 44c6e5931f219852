import type { DeviceSetting } from '../../../shared/settings.ts';
import { discoverAt, discoverCards, type MemoryOverrides } from './discovery.ts';
import type { CardFacts } from './reader.ts';
import type { SysTree } from './sysfs.ts';

type MemorySetting = 'discrete' | 'unified' | undefined;

/**
 * The cards to read: all of the machine's, or those the settings choose. An entry without a path
 * means every card of its kind that no other entry names, so that what a card's memory is can be
 * said without knowing its path. `memory` (by device id) wins over the entries.
 */
export function chooseCards(
  tree: SysTree,
  devices: readonly DeviceSetting[] | null,
  memory: MemoryOverrides,
): readonly CardFacts[] {
  if (devices === null) return discoverCards(tree, memory);
  const chosen = new Map<string, CardFacts>();
  const take = (card: CardFacts, setting: MemorySetting): void => {
    if (!chosen.has(card.id)) chosen.set(card.id, withMemorySetting(card, memory[card.id] ?? setting));
  };
  for (const entry of devices) {
    if (entry.kind !== 'amdgpu' || entry.path === undefined) continue;
    const card = discoverAt(tree, entry.path);
    if (card !== null) take(card, entry.memory);
  }
  const kinds = devices.filter(
    (entry) => entry.kind === 'nvidia' || (entry.kind === 'amdgpu' && entry.path === undefined),
  );
  if (kinds.length === 0) return [...chosen.values()];
  const all = discoverCards(tree);
  for (const entry of kinds) {
    const setting = entry.kind === 'amdgpu' || entry.kind === 'nvidia' ? entry.memory : undefined;
    for (const card of all) if (card.kind === entry.kind) take(card, setting);
  }
  return [...chosen.values()];
}

function withMemorySetting(card: CardFacts, memory: MemorySetting): CardFacts {
  if (memory === undefined) return card;
  const notes = memory === 'unified' ? ['Shares the system’s memory: the settings say so.'] : [];
  return { ...card, memory, memorySetting: memory, notes };
}
