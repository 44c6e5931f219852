import type { TurnClass } from '../gate/sidecar.ts';

/** One request that is over. No word of its prompt or answer is kept. */
export interface RequestRecord {
  /** Epoch ms of its arrival. */
  readonly atMs: number;
  /** `backend/model`, or the name that was asked for. */
  readonly model: string | null;
  readonly backend: string | null;
  readonly agent: string | null;
  readonly class: TurnClass;
  readonly route: 'local' | 'fallback' | 'refused';
  /** Why not plain local, or how it failed. */
  readonly reason: string | null;
  /** HTTP status sent; null: the client left before there was one. */
  readonly status: number | null;
  readonly promptTokens: number | null;
  readonly generatedTokens: number | null;
  /** Time spent waiting for its lane, its memory or its class. */
  readonly waitedMs: number;
  /** From its arrival to the first byte of the answer's body. */
  readonly firstByteMs: number | null;
  readonly totalMs: number;
  /** Reading of the prompt that a parked conversation saved. Left out or null: none, or not known. */
  readonly savedPromptMs?: number | null;
}

/** Tokens per second after the first byte; null where the answer does not say how many there were. */
export function tokensPerS(record: RequestRecord): number | null {
  if (record.generatedTokens === null || record.firstByteMs === null) return null;
  const ms = record.totalMs - record.firstByteMs;
  return ms <= 0 ? null : (record.generatedTokens * 1000) / ms;
}
