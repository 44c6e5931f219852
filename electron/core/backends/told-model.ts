import type { ServerQuery } from '../process/identity.ts';
import { field } from './http.ts';

/** A model as a server without llama.cpp's own states tells of it, in one reading. */
export interface ToldModel {
  /** The name a request means it by. */
  readonly name: string;
  readonly aliases: readonly string[];
  /** `unknown`: a word this version has not met. */
  readonly status: 'unloaded' | 'loading' | 'loaded' | 'sleeping' | 'stopping' | 'failed' | 'unknown';
  /** The server's own word, for sentences. */
  readonly statusText: string;
  /** A request runs or waits; null: the server does not tell. */
  readonly busy: boolean | null;
  /** Changes whenever the model has served something, as a time of last use does; null: there is no such thing. */
  readonly usedMark: string | null;
  readonly args: readonly string[] | null;
  readonly modelPath: string | null;
  readonly contextTokens: number | null;
  /** Memory the server claims for it. */
  readonly reportedBytes: number | null;
  /** Its weights on disk: less than it takes in memory. */
  readonly weightsBytes: number | null;
  readonly port: number | null;
  /** How its process is recognised; null: nothing to go by. */
  readonly query: ServerQuery | null;
  /** Epoch ms at which its server lets it go unless it is used again; null: not told, or never. */
  readonly expiresAtEpochMs: number | null;
  /** Its server lets it go this long after its last request; null: not told, or never. */
  readonly ttlMs: number | null;
  /** It can't be unloaded over HTTP. Left out: it can. */
  readonly isFixed?: boolean;
  /** What the server calls its loaded instances, where that is not its name. */
  readonly instances: readonly string[];
}

export const UNTOLD: Omit<ToldModel, 'name'> = {
  aliases: [],
  status: 'unloaded',
  statusText: 'not loaded',
  busy: null,
  usedMark: null,
  args: null,
  modelPath: null,
  contextTokens: null,
  reportedBytes: null,
  weightsBytes: null,
  port: null,
  query: null,
  expiresAtEpochMs: null,
  ttlMs: null,
  instances: [],
};

/** The entries of a list in a body that may be anything; null: there is no list under that key. */
export function entriesOf(body: unknown, key: string): readonly unknown[] | null {
  const list = field(body, key);
  return Array.isArray(list) ? list : null;
}

/** Whole bytes, 0 included; null: not told in a form we know. */
export function bytesOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Epoch ms of a time written as RFC 3339, with any offset and any number of digits; null: none, or the year 1. */
export function instantOf(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  const ms = Date.parse(value.replace(/(\.\d{3})\d+/, '$1'));
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

/** The port of a loopback URL such as `http://127.0.0.1:5801`; null: none, or elsewhere. */
export function loopbackPort(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  try {
    const url = new URL(value);
    const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0)$/.test(url.hostname);
    return isLoopback && url.port !== '' ? Number(url.port) : null;
  } catch {
    return null;
  }
}

/** Of several entries with one name the first counts. */
export function withoutDoubles(models: readonly ToldModel[]): readonly ToldModel[] {
  const seen = new Map<string, ToldModel>();
  for (const model of models) if (!seen.has(model.name)) seen.set(model.name, model);
  return [...seen.values()];
}
