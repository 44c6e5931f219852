import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { type FoundString, type JsonHead, JsonHeadScan } from './json-head.ts';
import { FormHeadScan } from './multipart-head.ts';
import { Spool } from './spool.ts';

/** Design: bodies of 64 MB stream through; a larger one is refused. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** A body up to this size is kept, so that it can be sent a second time and all its fields are known. */
const KEPT_BYTES = 256 * 1024;
/**
 * What comes before the name of the model is held in memory up to this size, then in a file. A word on
 * whether the answer is to be a stream, which the official clients put behind a long conversation, is waited for as long.
 */
const HELD_BYTES = 1024 * 1024;

export interface RequestHead {
  readonly model: FoundString | null;
  readonly user: string | null;
  readonly stream: boolean;
  /** What has come of the body so far; empty where it is in `spool`. */
  readonly bytes: Buffer;
  /** A beginning too long to be held; to be disposed when the exchange is over. */
  readonly spool: Spool | null;
  /** Nothing more comes: the body can be sent again. */
  readonly whole: boolean;
}

export type HeadRead =
  | { readonly kind: 'read'; readonly head: RequestHead }
  | { readonly kind: 'too_large' }
  /** The client left before it had said what it wants. */
  | { readonly kind: 'gone' }
  /** The disk that has to hold a long beginning is full. */
  | { readonly kind: 'no_room' };

/**
 * Reads as much of a body as routing needs: a small one whole, of a large one no more than up to its `model`.
 * At once where all of a small one is here: to listen for it would take two rounds through the queue of ticks.
 */
export function readHead(request: IncomingMessage): HeadRead | Promise<HeadRead> {
  const announced = Number(request.headers['content-length'] ?? Number.NaN);
  if (announced > MAX_BODY_BYTES) return { kind: 'too_large' };
  const scan = isForm(request) ? new FormHeadScan(request.headers['content-type'] ?? '') : new JsonHeadScan();
  const here = wholeBody(request, announced);
  if (here !== null) {
    scan.feed(here);
    return { kind: 'read', head: headOf(scan.head, here, null, true) };
  }
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let heldBytes = 0;
    let size = 0;
    let spool: Spool | null = null;
    let over = false;
    const finish = (read: HeadRead): void => {
      if (over) return;
      over = true;
      request.pause();
      request.off('data', onData);
      request.off('end', onEnd);
      request.off('close', onClose);
      if (read.kind !== 'read') void spool?.[Symbol.asyncDispose]();
      resolve(read);
    };
    const read = (whole: boolean): void => {
      const bytes = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks, heldBytes);
      finish({ kind: 'read', head: headOf(scan.head, bytes, spool, whole) });
    };
    const done = (whole: boolean): void => {
      if (spool === null) {
        read(whole);
        return;
      }
      request.pause();
      spill(() => read(whole));
    };
    /** Where no file can be made, it stays in memory. One at a time, since nothing comes while it is paused. */
    const spill = (then: () => void): void => {
      const taken = chunks;
      const write = async (): Promise<void> => {
        spool ??= await Spool.open();
        if (spool === null) return;
        chunks = [];
        heldBytes = 0;
        await spool.append(taken);
      };
      write().then(
        () => (over ? void spool?.[Symbol.asyncDispose]() : then()),
        () => finish({ kind: 'no_room' }),
      );
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      heldBytes += chunk.length;
      if (size > MAX_BODY_BYTES) {
        finish({ kind: 'too_large' });
        return;
      }
      scan.feed(chunk);
      // All of it is here, and can be sent again.
      if (size === announced && heldBytes === size) {
        done(true);
        return;
      }
      if (size <= KEPT_BYTES) return;
      const { model, stream } = scan.head;
      if (scan.done || (model !== null && (stream !== null || size > HELD_BYTES))) {
        done(false);
        return;
      }
      if (heldBytes <= HELD_BYTES) return;
      request.pause();
      spill(() => request.resume());
    };
    const onEnd = (): void => {
      // A request that is whole is closed too, and whoever sent it waits for its answer.
      request.off('close', onClose);
      done(true);
    };
    const onClose = (): void => finish({ kind: 'gone' });
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('close', onClose);
  });
}

/** null: it is not all here yet, or not small. */
function wholeBody(request: IncomingMessage, announced: number): Buffer | null {
  if (announced > KEPT_BYTES || request.readableLength === 0 || request.readableLength !== announced)
    return null;
  // As many as there are, and not all there will be: the stream is not asked whether it is at its end.
  const body: unknown = request.read(announced);
  return Buffer.isBuffer(body) ? body : null;
}

function headOf(
  { model, user, stream }: JsonHead,
  bytes: Buffer,
  spool: Spool | null,
  whole: boolean,
): RequestHead {
  return { model, user, stream: stream === true, bytes, spool, whole };
}

export function isForm(request: IncomingMessage): boolean {
  return /^multipart\/form-data/i.test(request.headers['content-type'] ?? '');
}

export function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

/** The body with another model's name in it, or as it came. */
export function renamed(head: RequestHead, name: string, isJson: boolean): Buffer {
  const { model, bytes } = head;
  if (model === null || model.value === name) return bytes;
  return Buffer.concat([bytes.subarray(0, model.from), token(name, isJson), bytes.subarray(model.to)]);
}

function token(name: string, isJson: boolean): Buffer {
  return Buffer.from(isJson ? JSON.stringify(name) : name, 'utf8');
}

export class BodyTooLarge extends Error {}

/** The beginning, then what still comes, at the pace at which it is taken; ends with BodyTooLarge past the limit. */
export function rest(request: IncomingMessage, beginning: Buffer, seenBytes: number): Readable {
  async function* parts(): AsyncGenerator<Buffer> {
    yield beginning;
    yield* remainder(request, seenBytes);
  }
  return Readable.from(parts(), { objectMode: false });
}

async function* remainder(request: IncomingMessage, seenBytes: number): AsyncGenerator<Buffer> {
  let size = seenBytes;
  // Its connection has to live on: the refusal of what is too long goes out on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const part: Buffer = chunk;
    size += part.length;
    if (size > MAX_BODY_BYTES) throw new BodyTooLarge();
    yield part;
  }
}

export interface SpooledBody {
  readonly body: Readable;
  /** By how much another name made it longer, or shorter. */
  readonly grownBytes: number;
}

/** The same for a beginning that is in a file. `name`: another one for the model; null: as it came. */
export function spooledBody(
  request: IncomingMessage,
  { model, whole }: RequestHead,
  spool: Spool,
  name: string | null,
): SpooledBody {
  const other = name === null || model === null || model.value === name ? null : model;
  const written = other === null || name === null ? Buffer.alloc(0) : token(name, !isForm(request));
  async function* parts(): AsyncGenerator<Buffer> {
    if (other === null) yield* spool.read(0, spool.sizeBytes);
    else {
      yield* spool.read(0, other.from);
      yield written;
      yield* spool.read(other.to, spool.sizeBytes);
    }
    if (!whole) yield* remainder(request, spool.sizeBytes);
  }
  const grownBytes = other === null ? 0 : written.length - (other.to - other.from);
  return { body: Readable.from(parts(), { objectMode: false }), grownBytes };
}
