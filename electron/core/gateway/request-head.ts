import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { type FoundString, JsonHeadScan } from './json-head.ts';
import { multipartModel } from './multipart-head.ts';

/** Design: bodies of 64 MB stream through; a larger one is refused. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** A body up to this size is kept, so that it can be sent a second time and all its fields are known. */
const KEPT_BYTES = 256 * 1024;

export interface RequestHead {
  readonly model: FoundString | null;
  readonly user: string | null;
  readonly stream: boolean;
  /** What has come of the body so far. */
  readonly bytes: Buffer;
  /** Nothing more comes: the body can be sent again. */
  readonly whole: boolean;
}

export type HeadRead =
  | { readonly kind: 'read'; readonly head: RequestHead }
  | { readonly kind: 'too_large' }
  /** The client left before it had said what it wants. */
  | { readonly kind: 'gone' };

/** Reads as much of a body as routing needs: a small one whole, of a large one no more than up to its `model`. */
export function readHead(request: IncomingMessage): Promise<HeadRead> {
  const announced = Number(request.headers['content-length'] ?? Number.NaN);
  if (announced > MAX_BODY_BYTES) return Promise.resolve({ kind: 'too_large' });
  const contentType = request.headers['content-type'] ?? '';
  const isForm = /^multipart\/form-data/i.test(contentType);
  return new Promise((resolve) => {
    const scan = new JsonHeadScan();
    const chunks: Buffer[] = [];
    let size = 0;
    let lookedBytes = 0;
    let formModel: FoundString | null = null;
    const finish = (read: HeadRead): void => {
      request.pause();
      request.off('data', onData);
      request.off('end', onEnd);
      request.off('close', onClose);
      resolve(read);
    };
    const done = (whole: boolean): void => {
      const bytes = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks, size);
      if (isForm) formModel ??= multipartModel(bytes, contentType);
      const { model, user, stream } = scan.head;
      finish({
        kind: 'read',
        head: { model: isForm ? formModel : model, user, stream: stream === true, bytes, whole },
      });
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BODY_BYTES) {
        finish({ kind: 'too_large' });
        return;
      }
      if (!isForm) scan.feed(chunk);
      if (size <= KEPT_BYTES) return;
      // A form is looked through each time it has doubled: its parts may be cut anywhere.
      if (isForm && size >= lookedBytes * 2) {
        lookedBytes = size;
        formModel = multipartModel(Buffer.concat(chunks, size), contentType);
      }
      if (isForm ? formModel !== null : scan.head.model !== null || scan.done) done(false);
    };
    const onEnd = (): void => done(true);
    const onClose = (): void => finish({ kind: 'gone' });
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('close', onClose);
  });
}

/** The body with another model's name in it, or as it came. */
export function renamed(head: RequestHead, name: string, isJson: boolean): Buffer {
  const { model, bytes } = head;
  if (model === null || model.value === name) return bytes;
  const token = Buffer.from(isJson ? JSON.stringify(name) : name, 'utf8');
  return Buffer.concat([bytes.subarray(0, model.from), token, bytes.subarray(model.to)]);
}

export class BodyTooLarge extends Error {}

/** The beginning, then what still comes, at the pace at which it is taken; ends with BodyTooLarge past the limit. */
export function rest(request: IncomingMessage, beginning: Buffer, seenBytes: number): Readable {
  async function* parts(): AsyncGenerator<Buffer> {
    yield beginning;
    let size = seenBytes;
    for await (const chunk of request) {
      const part: Buffer = chunk;
      size += part.length;
      if (size > MAX_BODY_BYTES) throw new BodyTooLarge();
      yield part;
    }
  }
  return Readable.from(parts(), { objectMode: false });
}
