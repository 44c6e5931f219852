import type { ParkedState } from '../../../shared/state.ts';
import { argsKey } from '../ledger/prediction.ts';
import type { ModelView } from '../loop/model-view.ts';

/** One conversation as a llama-server wrote it to a file: what it had read, so that it need not be read again. */
export interface Conversation {
  /** `backend/model`. */
  readonly modelId: string;
  readonly slot: number;
  /** Whole path. */
  readonly path: string;
  readonly tokens: number;
  readonly bytes: number;
  /** Epoch ms. */
  readonly parkedAtMs: number;
  /** Of the model as it ran: it fits no other weights, flags or build. */
  readonly print: string;
  /** Of the process that wrote it. */
  readonly instance: string;
  /** What one token of a prompt took it to read; null: not known. */
  readonly msPerToken: number | null;
}

/** Conversations shorter than this are read again sooner than a file is written and read. */
export const LEAST_TOKENS = 32;

/** What a saved state depends on. `weights`: sizes and times of its files, as one string. */
export function printOf(view: ModelView, weights: string): string {
  const { args, modelPath } = view.observed;
  return JSON.stringify([modelPath, weights, argsKey(args), view.backendVersion ?? null]);
}

export function instanceOf(view: ModelView): string {
  const { process, sinceMs } = view.observed;
  return process === null ? `since ${Math.round(sinceMs)}` : `${process.pid} ${process.startTimeTicks}`;
}

/** Where its server keeps slots; null: it was started without. */
export function slotFolderOf(args: readonly string[] | null): string | null {
  const words = args ?? [];
  for (let index = words.length - 1; index >= 0; index -= 1) {
    const word = words[index] ?? '';
    if (word === '--slot-save-path') return words[index + 1] ?? null;
    if (word.startsWith('--slot-save-path=')) return word.slice('--slot-save-path='.length);
  }
  return null;
}

/** Those that have to go so that the rest keeps the budget and its time: the oldest first. */
export function surplus(
  kept: readonly Conversation[],
  budget: { readonly limitBytes: number; readonly keepMs: number },
  epochMs: number,
): readonly Conversation[] {
  const newestFirst = [...kept].sort((one, other) => other.parkedAtMs - one.parkedAtMs);
  let bytes = 0;
  return newestFirst.filter((one) => {
    // A clock that was set back makes nothing old.
    const isOld = epochMs - one.parkedAtMs > budget.keepMs;
    const isTooMuch = bytes + one.bytes > budget.limitBytes;
    if (!isOld && !isTooMuch) bytes += one.bytes;
    return isOld || isTooMuch;
  });
}

/**
 * Which slot each goes back to: only slots that hold nothing and do nothing, each conversation to the one it
 * came from where that is free, and never two to one. Newest first: an old one waits where slots are few.
 */
export function seating(
  kept: readonly Conversation[],
  slots: readonly { readonly id: number; readonly isProcessing: boolean; readonly tokens: number | null }[],
): readonly { readonly conversation: Conversation; readonly slot: number }[] {
  const free = new Set(
    slots.flatMap((slot) => (!slot.isProcessing && (slot.tokens ?? 0) === 0 ? [slot.id] : [])),
  );
  const newestFirst = [...kept].sort((one, other) => other.parkedAtMs - one.parkedAtMs);
  const seats: { readonly conversation: Conversation; readonly slot: number }[] = [];
  const seat = (conversation: Conversation, slot: number): void => {
    free.delete(slot);
    seats.push({ conversation, slot });
  };
  for (const one of newestFirst) if (free.has(one.slot)) seat(one, one.slot);
  for (const one of newestFirst) {
    const [slot] = free;
    if (slot === undefined) break;
    if (!seats.some(({ conversation }) => conversation === one)) seat(one, slot);
  }
  return seats;
}

/** For the state; null: none. */
export function parkedState(kept: readonly Conversation[]): ParkedState | null {
  if (kept.length === 0) return null;
  return {
    conversations: kept.length,
    tokens: kept.reduce((sum, one) => sum + one.tokens, 0),
    bytes: kept.reduce((sum, one) => sum + one.bytes, 0),
    since: new Date(Math.min(...kept.map((one) => one.parkedAtMs))).toISOString(),
  };
}

/** As it was kept; null: not one. */
export function readConversation(value: unknown): Conversation | null {
  if (typeof value !== 'object' || value === null) return null;
  const {
    modelId,
    slot,
    path,
    tokens,
    bytes,
    parkedAtMs,
    print,
    instance,
    msPerToken,
  }: Record<string, unknown> = { ...value };
  if (typeof modelId !== 'string' || typeof path !== 'string' || typeof print !== 'string') return null;
  if (typeof slot !== 'number' || typeof tokens !== 'number' || typeof bytes !== 'number') return null;
  if (typeof parkedAtMs !== 'number' || typeof instance !== 'string') return null;
  const pace = typeof msPerToken === 'number' ? msPerToken : null;
  return { modelId, slot, path, tokens, bytes, parkedAtMs, print, instance, msPerToken: pace };
}
