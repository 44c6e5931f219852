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
  /** Of the whole prompt, whether it was read anew or known from before. */
  readonly promptTokens: number | null;
  readonly generatedTokens: number | null;
  /** Time spent waiting for its lane, its memory or its class. */
  readonly waitedMs: number;
  /** From its arrival to the first byte of the answer's body. */
  readonly firstByteMs: number | null;
  readonly totalMs: number;
  /**
   * How long its tokens were generated: as the server says, else from the first byte of a stream to its end.
   * Left out or null: not known, as of a whole answer that says nothing of it.
   */
  readonly generatedMs?: number | null;
  /** Reading of the prompt that a parked conversation saved. Left out or null: none, or not known. */
  readonly savedPromptMs?: number | null;
}

/** Tokens per second while they were generated; null where that is not known. */
export function tokensPerS({ generatedTokens, generatedMs }: RequestRecord): number | null {
  if (generatedTokens === null || generatedMs === null || generatedMs === undefined) return null;
  return generatedMs <= 0 ? null : (generatedTokens * 1000) / generatedMs;
}
