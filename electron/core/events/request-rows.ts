import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { RequestRecord } from './request-record.ts';

export interface RequestQuery {
  /** Epoch ms, inclusive. */
  readonly sinceMs?: number;
  readonly model?: string;
  readonly agent?: string;
  /** 1–5000, default 200; the newest are kept. */
  readonly limit?: number;
}

const MOST_ROWS = 5000;

/** The caller holds the transaction. */
export function writeRequests(db: DatabaseSync, records: readonly RequestRecord[]): void {
  const insert = db.prepare(
    `INSERT INTO requests (at_ms, model, backend, agent, class, route, reason, status, prompt_tokens,
       generated_tokens, waited_ms, first_byte_ms, total_ms, generated_ms, saved_prompt_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const record of records)
    insert.run(
      record.atMs,
      record.model,
      record.backend,
      record.agent,
      record.class,
      record.route,
      record.reason,
      record.status,
      record.promptTokens,
      record.generatedTokens,
      record.waitedMs,
      record.firstByteMs,
      record.totalMs,
      record.generatedMs ?? null,
      record.savedPromptMs ?? null,
    );
}

/** Oldest first. */
export function readRequests(db: DatabaseSync, query: RequestQuery): readonly RequestRecord[] {
  const conditions: string[] = [];
  const values: SQLInputValue[] = [];
  const where = (condition: string, value: SQLInputValue | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  where('at_ms >= ?', query.sinceMs);
  where('model = ?', query.model);
  where('agent = ?', query.agent);
  const filter = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const limit = Math.min(MOST_ROWS, Math.max(1, query.limit ?? 200));
  return db
    .prepare(`SELECT * FROM requests ${filter} ORDER BY id DESC LIMIT ?`)
    .all(...values, limit)
    .map(fromRow)
    .reverse();
}

function fromRow(row: Readonly<Record<string, unknown>>): RequestRecord {
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  const figure = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  return {
    atMs: figure(row.at_ms) ?? 0,
    model: text(row.model),
    backend: text(row.backend),
    agent: text(row.agent),
    class: row.class === 'batch' ? 'batch' : 'interactive',
    route: row.route === 'fallback' ? 'fallback' : row.route === 'refused' ? 'refused' : 'local',
    reason: text(row.reason),
    status: figure(row.status),
    promptTokens: figure(row.prompt_tokens),
    generatedTokens: figure(row.generated_tokens),
    waitedMs: figure(row.waited_ms) ?? 0,
    firstByteMs: figure(row.first_byte_ms),
    totalMs: figure(row.total_ms) ?? 0,
    ...(typeof row.generated_ms === 'number' ? { generatedMs: row.generated_ms } : {}),
    ...(typeof row.saved_prompt_ms === 'number' ? { savedPromptMs: row.saved_prompt_ms } : {}),
  };
}
