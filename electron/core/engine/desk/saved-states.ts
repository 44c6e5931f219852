import type { Result } from '../../../../shared/errors.ts';
import type { StateRecord } from '../engine-host.ts';
import type { Agent, SavedState } from './agent.ts';
import type { StateFiles } from './state-files.ts';

/** Below that nobody minds where a state lies. */
const LEAST_BYTES = 64 * 1024;

/** How many bytes an agent's state will have: at most its context, in proportion to its conversation. */
export function expectedBytes(agent: Agent): number {
  const before = agent.saved?.record;
  const count = Math.max(1, agent.tokens.length);
  if (before !== undefined && before.tokens.length > 0)
    return Math.ceil((before.bytes / before.tokens.length) * (count + 8)) + LEAST_BYTES;
  return (
    Math.min(agent.contextBytes, Math.ceil((agent.contextBytes * (count + 8)) / agent.contextTokens)) +
    LEAST_BYTES
  );
}

/**
 * Saves what an agent's context holds: in host memory, in a file where that is short, or not at all.
 * What the newest saved state needs, older ones of host memory give way for, into files.
 */
export async function saveSomewhere(
  files: StateFiles,
  agent: Agent,
  others: readonly Agent[],
  save: (path: string) => Promise<Result<StateRecord>>,
): Promise<SavedState | null> {
  const bytes = expectedBytes(agent);
  const old = agent.saved;
  let places = await files.placesFor(bytes);
  if (!places.includes('host')) {
    // An older state of its own is worth less than a place for the new one.
    if (old !== null) await drop(files, agent);
    await makeWay(files, agent, others, bytes);
    places = await files.placesFor(bytes);
  }
  for (const place of places) {
    const path = files.pathFor(agent.name, place);
    const record = await save(path);
    if (record.ok) {
      const saved: SavedState = { place, record: record.value };
      files.add(saved);
      if (old !== null) await drop(files, agent);
      return saved;
    }
    if (record.error.code !== 'storage_failed') break;
  }
  return agent.saved;
}

async function drop(files: StateFiles, agent: Agent): Promise<void> {
  if (agent.saved !== null) await files.remove(agent.saved);
  agent.saved = null;
}

/** States that wait longest in host memory go to files, until so many bytes have room there. */
async function makeWay(
  files: StateFiles,
  agent: Agent,
  others: readonly Agent[],
  bytes: number,
): Promise<void> {
  const waiting = others
    .filter((other) => other !== agent && other.saved?.place === 'host')
    .sort((one, other) => one.lastUsedAtMs - other.lastUsedAtMs);
  for (const other of waiting) {
    if ((await files.placesFor(bytes)).includes('host')) return;
    if (other.saved === null) continue;
    if (other.live !== null) {
      // A copy of what is live is a precaution only.
      await drop(files, other);
      continue;
    }
    const moved = await files.toFile(other.name, other.saved);
    if (moved !== null) other.saved = moved;
  }
}
